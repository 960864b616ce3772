//! Errors for texts that are not a recording.

/// The version of the format. Files of other versions are not read.
pub(super) const VERSION: u32 = 1;

/// Maximum bytes of a recording as text.
pub(super) const MAX_FILE_BYTES: usize = 256 << 20;

/// Why a text is not a recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The text is larger than any recording that cx writes.
    #[error("the recording is {bytes} bytes, at most {} are read", MAX_FILE_BYTES)]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// The recording has another version of the format.
    #[error(
        "the recording has the format {found}, this version of cx reads format {VERSION}: replay it with cx {version}"
    )]
    Version {
        /// The format's version.
        found: u64,
        /// The version of cx that wrote it, as the file says.
        version: String,
    },
    /// A line is not one of a recording's.
    #[error("line {line} of the recording is damaged: {problem}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// The last lines are missing.
    #[error("the recording ends before its outcome: the file was cut off after line {lines}")]
    CutOff {
        /// Number of lines that are there.
        lines: usize,
    },
}
