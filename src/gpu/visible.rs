//! The cards that `CUDA_VISIBLE_DEVICES` leaves to the processes of a shell: a site or an interactive job sets it.

use super::smi::Card;

/// Its value. Numbers are taken as `nvidia-smi` counts, which is how schedulers write them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Visible(Option<String>);

impl Visible {
    /// Not set: all cards. Set but empty: none.
    pub fn new(variable: Option<String>) -> Visible {
        Visible(variable)
    }

    /// Whether it leaves this card.
    pub fn includes(&self, card: &Card) -> bool {
        let Some(text) = &self.0 else { return true };
        text.split(',').map(str::trim).any(|word| match word.parse::<u32>() {
            Ok(number) => number == card.index,
            Err(_) => {
                let whole = card.uuid.as_deref().unwrap_or_default();
                word.len() > "GPU-".len() && whole.starts_with(word)
            }
        })
    }

    /// As a message shows it.
    pub fn text(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_uuids() {
        let seen = |text: Option<&str>| -> Vec<u32> {
            let visible = Visible::new(text.map(str::to_owned));
            (0..4).filter(|index| visible.includes(&Card::example(*index))).collect()
        };
        assert_eq!(seen(None), [0, 1, 2, 3]);
        for none in ["", "-1", "NoDevFiles", "none", "MIG-1234", "GPU-"] {
            assert_eq!(seen(Some(none)), [0; 0], "{none}");
        }
        assert_eq!(seen(Some("2, 1")), [1, 2]);
        let uuid = Card::example(3).uuid.unwrap();
        assert_eq!(seen(Some(&uuid)), [3]);
        assert_eq!(seen(Some(&format!("0,{}", &uuid[..uuid.len() - 1]))), [0, 1, 2, 3]);
    }
}
