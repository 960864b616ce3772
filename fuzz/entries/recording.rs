//! Target of recordings: a recording that was read is written so that it is read as the same again.

use super::Recording;

pub(crate) fn recording(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(recording) = Recording::parse(&text) else { return };
    let written = recording.to_text();
    match Recording::parse(&written) {
        Ok(again) => assert_eq!(again.to_text(), written),
        Err(error) => panic!("{error}: {written}"),
    }
}

#[test]
fn v_415_recordings_from_untrusted_senders() {
    crate::fuzzing::smoke("recording", 3_000, recording);
}
