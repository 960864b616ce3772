//! Prints the function, with a bound on the output size.

use std::io::{self, Write};

use swc_common::sync::Lrc;
use swc_common::{BytePos, FileName, LineCol, SourceMap};
use swc_ecma_ast::Program;
use swc_ecma_codegen::text_writer::JsWriter;
use swc_ecma_codegen::{Config, Emitter};

use super::cancellation::Cancellation;
use super::error::{TranspileError, TranspileErrorKind};
use super::work;

/// Maximum bytes of code: this many per byte of source, plus a constant. Decorators and `accessor`
/// fields grow most: 4,000 of them make 3 MB. Without the bound, an enum's name of 100 KB would be
/// written twice for each of its 50,000 members.
const MAX_GROWTH: usize = 8;
const MAX_GROWTH_ON_TOP: usize = 4 << 20;

/// Bytes of code between two checks whether the run has been stopped. To print them takes a few
/// milliseconds.
const CHECK_EVERY: usize = 1 << 18;

/// The code, and the source position of each of its tokens.
pub(super) type Printed = (String, Vec<(BytePos, LineCol)>);

/// Prints `program` between `open` and `close`.
pub(super) fn print(
    source: &str,
    program: &Program,
    open: &str,
    close: &str,
    cancellation: Cancellation<'_>,
) -> Result<Printed, TranspileError> {
    let map: Lrc<SourceMap> = Lrc::default();
    // The printer asks the map which nodes shared a line. Its first file starts at the parser's
    // first position.
    map.new_source_file(Lrc::new(FileName::Anon), source.to_owned());
    let mut code = Vec::with_capacity(source.len() + source.len() / 4 + open.len() + close.len());
    code.extend_from_slice(open.as_bytes());
    let mut tokens = Vec::new();
    let max_bytes = source.len().saturating_mul(MAX_GROWTH).saturating_add(MAX_GROWTH_ON_TOP);
    let mut bounded =
        Bounded { code: &mut code, max_bytes, check_at: CHECK_EVERY, cancellation, refusal: None };
    let mut writer = JsWriter::new(map.clone(), "\n", &mut bounded, Some(&mut tokens));
    // Indentation would grow with the square of the depth: a thousand blocks would take 4 MB.
    writer.set_indent_str("");
    let mut emitter = Emitter { cfg: Config::default(), cm: map, comments: None, wr: writer };
    let written = emitter.emit_program(program);
    drop(emitter);
    if let Some(refusal) = bounded.refusal.take() {
        return Err(refusal);
    }
    written.expect("writing to memory fails only with a refusal");
    code.extend_from_slice(close.as_bytes());
    Ok((String::from_utf8(code).expect("the printer writes UTF-8"), tokens))
}

/// An in-memory writer with a maximum size.
struct Bounded<'a> {
    code: &'a mut Vec<u8>,
    max_bytes: usize,
    check_at: usize,
    cancellation: Cancellation<'a>,
    /// Why writing has stopped.
    refusal: Option<TranspileError>,
}

impl Write for Bounded<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.code.len() + bytes.len();
        if length > self.max_bytes {
            return Err(self.refuse(too_long(self.max_bytes)));
        }
        if length > self.check_at {
            self.check_at = length + CHECK_EVERY;
            self.cancellation.check().map_err(|error| self.refuse(error))?;
        }
        self.code.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Bounded<'_> {
    /// Records `error` for the author. The returned error only makes the printer stop.
    fn refuse(&mut self, error: TranspileError) -> io::Error {
        self.refusal.get_or_insert(error);
        io::ErrorKind::FileTooLarge.into()
    }
}

fn too_long(max_bytes: usize) -> TranspileError {
    TranspileError {
        kind: TranspileErrorKind::Transpile,
        message: work::MESSAGE.to_owned(),
        location: None,
        hint: Some(format!(
            "its JavaScript would have more than {max_bytes} bytes: shorten the names and texts of enums and namespaces"
        )),
    }
}
