use std::io::Cursor;

use super::*;

fn all(bytes: &[u8]) -> Result<Vectors, Fault> {
    read(&mut Cursor::new(bytes), &|_| true, false)
}

fn refused(bytes: &[u8]) -> String {
    match all(bytes) {
        Err(Fault::Refused(text)) => text,
        other => panic!("{other:?}"),
    }
}

/// `pickle.dumps({"A": [1.0, -2.5], "B": [3, 1e3]}, protocol=4)`
const LISTS: &[u8] = b"\x80\x04\x95/\0\0\0\0\0\0\0}\x94(\x8c\x01A\x94]\x94(G?\xf0\0\0\0\0\0\0G\xc0\x04\0\0\0\0\0\0e\x8c\x01B\x94]\x94(K\x03G@\x8f@\0\0\0\0\0eu.";

#[test]
fn lists_of_numbers() {
    let vectors = all(LISTS).unwrap();
    assert_eq!((vectors.names, vectors.dims), (2, 2));
    assert_eq!(vectors.found["A"], [1.0, -2.5]);
    assert_eq!(vectors.found["B"], [3.0, 1000.0]);
    let one = read(&mut Cursor::new(LISTS), &|name| name == "B", false).unwrap();
    assert_eq!((one.names, one.found.len()), (2, 1));
}

#[test]
fn every_cut_is_refused() {
    for length in 0..LISTS.len() {
        assert!(all(&LISTS[..length]).is_err(), "{length}");
    }
}

#[test]
fn a_vector_of_two_names_is_read_again_where_it_was_not_kept() {
    // one = [1.0]; pickle.dumps({"A": one, "B": [2.0], "C": one}, protocol=2), in two runs of items.
    let bytes = b"\x80\x02}q\x00(X\x01\0\0\0Aq\x01]q\x02G?\xf0\0\0\0\0\0\0aX\x01\0\0\0Bq\x03]q\x04G@\0\0\0\0\0\0\0au(X\x01\0\0\0Cq\x05h\x02u.";
    let only_c = |name: &str| name == "C";
    assert_eq!(read(&mut Cursor::new(bytes), &only_c, false), Err(Fault::Forgotten));
    let kept = read(&mut Cursor::new(bytes), &only_c, true).unwrap();
    assert_eq!((kept.names, &kept.found["C"]), (3, &vec![1.0]));
    assert_eq!(all(bytes).unwrap().found["C"], [1.0]);
}

#[test]
fn code_is_named_and_never_run() {
    // What os.system("id") is pickled as.
    assert_eq!(
        refused(b"\x80\x04\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x02id\x94\x85\x94R\x94."),
        "it names posix.system, which no table of vectors needs"
    );
    assert_eq!(
        refused(b"\x80\x02cbuiltins\neval\n."),
        "it names builtins.eval, which no table of vectors needs"
    );
    let opcode = refused(b"\x80\x04\x8f\x94.");
    assert_eq!(opcode, "it holds opcode 0x8f (a set), which no table of vectors needs");
}

#[test]
fn what_is_no_table_is_told() {
    assert_eq!(refused(b"(dp0\n."), "it does not begin as a pickle of protocol 2 or later does");
    assert_eq!(refused(b"\x80\x04]\x94."), "it is no dictionary");
    assert_eq!(refused(b"\x80\x09}."), "its protocol is 9, not 2 to 5");
    assert_eq!(refused(b"\x80\x04}\x8c\x01AK\x01s."), "what it has for A is no vector of numbers");
    assert_eq!(refused(b"\x80\x04}K\x01]K\x01as."), "its dictionary has a key that is no text");
    assert_eq!(refused(b"\x80\x04}\x8c\x01A}s."), "it holds a dictionary within another");
    assert_eq!(refused(b"\x80\x04]\x8c\x01Aa."), "it has a list of something else than numbers");
    assert_eq!(
        refused(b"\x80\x04}(\x8c\x01A](K\x01K\x02e\x8c\x01B](K\x01eu."),
        "its vectors differ in length: A has 2 numbers, B has 1"
    );
}

#[test]
fn no_length_and_no_place_in_the_file_takes_memory() {
    assert!(refused(b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f").contains("bytes, more than"));
    assert!(refused(b"\x80\x04Nr\xff\xff\xff\xff.").contains("more values at once"));
    assert!(refused(b"\x80\x04h\x07.").contains("recalls what it has not remembered"));
    assert!(refused(b"\x80\x04u.").contains("takes more values from its stack"));
}
