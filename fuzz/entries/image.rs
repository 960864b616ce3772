//! Target of taking the memory image out of a component: no panic, and no image that is not as large as the memory.

use super::take_apart;

pub(crate) fn image(data: &[u8]) {
    let Ok(parts) = take_apart(data.to_vec()) else { return };
    match parts.image {
        None => assert_eq!(parts.component, data),
        Some(image) => assert!(parts.component.len() <= data.len() && image.len() % 65_536 == 0),
    }
}

#[cfg(test)]
#[test]
fn v_304_images() {
    crate::fuzzing::smoke("image", 5_000, image);
}
