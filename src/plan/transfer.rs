//! What is particular to a transfer.

use super::fitted::plain;
use super::inputs::Input;
use super::request::{Request, Role};
use crate::kernel::classify::Kind;
use crate::method::Task;

/// An option of one classifier that was given to another.
pub fn unused(request: &Request) -> Option<String> {
    let value = |name: &str| request.given.iter().find(|given| given.name == name).map(|given| &given.value);
    let classifier = value("classifier").map_or("logreg".to_owned(), plain);
    let idle = request.task == Task::Transfer && value("knn_k").is_some() && classifier != Kind::Knn.name();
    idle.then(|| format!("--knn-k is not used by the classifier {classifier}, only by knn"))
}

/// Gives the query another name where reference and query have the same: their embeddings go into one folder.
pub fn tell_apart(task: Task, inputs: &mut [Input]) {
    let reference = inputs.iter().find(|input| input.role == Role::Reference).map(|input| input.id.clone());
    let Some(reference) = reference.filter(|_| task == Task::Transfer) else { return };
    for query in inputs.iter_mut().filter(|input| input.role == Role::Query && input.id == reference) {
        query.id.push_str("_query");
    }
}
