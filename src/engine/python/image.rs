//! Extracts the initial memory image from a component.
//!
//! componentize-py runs the interpreter at build time and stores the resulting memory, 33 MB, as
//! data segments in the module that defines the memory. Without these segments the component
//! compiles as before. `memories.rs` then creates the memory, and can make it start from the image
//! at almost no cost.
//!
//! wasmtime can map a module's data too, but only into memories that it allocates itself: into
//! those of a `MemoryCreator` it would copy all 33 MB for each interpreter. `wasmparser` reads the
//! sections; this module only chooses the bytes that move.

use std::ops::Range;

use wasmparser::{
    BinaryReader, BinaryReaderError, DataKind, DataSectionReader, MemorySectionReader, Operator,
};

/// Bytes of a component's or a module's header: the magic number, the version, the layer.
const HEADER: usize = 8;

/// Section ids in the binary formats of [components] and [modules].
///
/// [components]: https://github.com/WebAssembly/component-model/blob/main/design/mvp/Binary.md
/// [modules]: https://webassembly.github.io/spec/core/binary/modules.html
const CORE_MODULE: u8 = 1;
const MEMORY: u8 = 5;
const DATA: u8 = 11;
const DATA_COUNT: u8 = 12;

/// Number of pages that 32 bits can address. The component is not validated yet, so a memory may be
/// declared with more.
const MAX_PAGES: u64 = 1 << 16;

/// A component split into code and memory image.
pub(super) struct Parts {
    /// The component, without its memory's data segments if there is an image.
    pub(super) component: Vec<u8>,
    /// The complete initial content of the memory, if the component has one memory whose data can
    /// be moved.
    pub(super) image: Option<Vec<u8>>,
}

/// Extracts the data from the one module that defines and initializes a memory. A component is
/// returned unchanged if it has no such module, several of them, or data that its code may use
/// later.
///
/// # Errors
///
/// If the input is not a component or is truncated.
pub(super) fn take_apart(component: Vec<u8>) -> Result<Parts, BinaryReaderError> {
    let mut found = None;
    for section in sections(&component, HEADER..component.len())? {
        if section.id != CORE_MODULE {
            continue;
        }
        let Some(memory) = memory(&component, &section.body)? else { continue };
        if found.replace((section, memory)).is_some() {
            return Ok(Parts { component, image: None });
        }
    }
    let Some((module, Memory { data, image })) = found else {
        return Ok(Parts { component, image: None });
    };
    let mut without = Vec::with_capacity(component.len() - data.len());
    without.extend_from_slice(&component[..module.whole.start]);
    without.push(CORE_MODULE);
    write_length(&mut without, module.body.len() - data.len());
    without.extend_from_slice(&component[module.body.start..data.start]);
    without.extend_from_slice(&component[data.end..]);
    Ok(Parts { component: without, image: Some(image) })
}

struct Section {
    id: u8,
    /// The section including its id and length.
    whole: Range<usize>,
    body: Range<usize>,
}

/// Parses all sections in a range, which starts after the header.
fn sections(binary: &[u8], range: Range<usize>) -> Result<Vec<Section>, BinaryReaderError> {
    let mut reader = BinaryReader::new(binary.get(range.clone()).unwrap_or_default(), range.start);
    let mut sections = Vec::new();
    while !reader.eof() {
        let start = reader.original_position();
        let id = reader.read_u8()?;
        let body = reader.read_reader()?.range();
        sections.push(Section { id, whole: start..body.end, body });
    }
    Ok(sections)
}

/// A module's memory image, and the range of its data section.
struct Memory {
    data: Range<usize>,
    image: Vec<u8>,
}

/// The memory of a module, if the module defines one that its data initializes.
fn memory(binary: &[u8], module: &Range<usize>) -> Result<Option<Memory>, BinaryReaderError> {
    let sections = sections(binary, module.start + HEADER..module.end)?;
    let of = |id| sections.iter().find(|section| section.id == id);
    // If there is a count of the segments, code may copy from them at any time.
    let (Some(memories), Some(data), None) = (of(MEMORY), of(DATA), of(DATA_COUNT)) else { return Ok(None) };
    let reader = |section: &Section| BinaryReader::new(&binary[section.body.clone()], section.body.start);
    let memories: Vec<_> =
        MemorySectionReader::new(reader(memories))?.into_iter().collect::<Result<_, _>>()?;
    let [memory] = memories[..] else { return Ok(None) };
    if memory.memory64 || memory.shared || memory.page_size_log2.is_some() || memory.initial > MAX_PAGES {
        return Ok(None);
    }
    // At most 4 GiB, which a component can also request without data. A run's limit is below that.
    let Ok(length) = usize::try_from(memory.initial << 16) else { return Ok(None) };
    let mut image = vec![0; length];
    for segment in DataSectionReader::new(reader(data))? {
        let segment = segment?;
        let DataKind::Active { memory_index: 0, offset_expr } = segment.kind else { return Ok(None) };
        let mut operators = offset_expr.get_operators_reader();
        let Operator::I32Const { value } = operators.read()? else { return Ok(None) };
        let offset = value.cast_unsigned() as usize;
        // The segment lies beyond the end of the memory. wasmtime reports that error.
        let Some(target) = image.get_mut(offset..offset + segment.data.len()) else { return Ok(None) };
        target.copy_from_slice(segment.data);
    }
    Ok(Some(Memory { data: data.whole.clone(), image }))
}

/// Writes a length as LEB128, the encoding of all lengths in these formats.
fn write_length(to: &mut Vec<u8>, mut length: usize) {
    while length > 0x7f {
        to.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    to.push(length as u8);
}

#[cfg(any(test, fuzzing))]
#[path = "../../../fuzz/entries/image.rs"]
pub(crate) mod fuzzing;
#[cfg(test)]
mod tests;
