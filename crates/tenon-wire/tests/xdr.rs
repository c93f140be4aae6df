//! Tests of the bytes that go on the wire as XDR, and of those that are refused.

use tenon_wire::{
    Blittable, Buffer, DecodeError, DecodeErrorKind, DecodeMode, Decoder, EncodeErrorKind, Encoder,
    Lean, Limits, Representation, Xdr,
};

fn written(write: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
    let mut buffer = Buffer::with_capacity(0);
    buffer.extend(&[0xAA; 64]);
    buffer.clear();
    write(&mut Encoder::new(&mut buffer));
    buffer.as_slice().to_vec()
}

fn strict(bytes: &[u8]) -> Decoder<'_> {
    Decoder::with(bytes, DecodeMode::Strict, Limits::default())
}

fn kind<T: std::fmt::Debug>(result: Result<T, DecodeError>) -> (DecodeErrorKind, usize) {
    let error = result.expect_err("refused");
    (error.kind, error.offset)
}

#[test]
fn items_lie_at_their_offsets_in_network_order() {
    let bytes = written(|out| {
        let mut block = out.block::<36>();
        block.put(0, -2i32);
        block.put(4, 3u64);
        block.put(12, 1.5f32);
        block.put_word(16, -1i16);
        block.put(20, [7u8; 16]);
    });
    assert_eq!(
        bytes[..20],
        [
            255, 255, 255, 254, 0, 0, 0, 0, 0, 0, 0, 3, 0x3f, 0xc0, 0, 0, 255, 255, 255, 255
        ]
    );
    let mut input = strict(&bytes);
    let block = input.block::<36>().unwrap();
    assert_eq!(block.get::<i32>(0), -2);
    assert_eq!(block.get::<u64>(4), 3);
    assert_eq!(block.get::<f32>(12), 1.5);
    assert_eq!(block.get_word::<i16>(16), Ok(-1));
    assert_eq!(block.get::<[u8; 16]>(20), [7; 16]);
}

#[test]
fn lenient_words_are_forgiven_and_strict_ones_are_not() {
    let bytes = [0, 0, 0, 1, 0, 0, 1, 5];
    let mut lenient = Decoder::new(&bytes);
    let block = lenient.block::<8>().unwrap();
    assert_eq!(block.get_word::<bool>(4), Ok(true));
    assert_eq!(block.get_word::<u8>(4), Ok(5));
    let mut input = strict(&bytes);
    let block = input.block::<8>().unwrap();
    assert_eq!(block.get_word::<bool>(0), Ok(true));
    assert_eq!(
        kind(block.get_word::<bool>(4)),
        (DecodeErrorKind::NotABoolean(261), 4)
    );
    assert_eq!(
        kind(block.get_word::<u8>(4)),
        (DecodeErrorKind::OutOfRange(261), 4)
    );
    assert_eq!(
        kind(strict(&[0, 0, 0, 1, 0, 0, 0, 9]).get_counted_words::<bool>(5)),
        (DecodeErrorKind::NotABoolean(9), 4)
    );
}

#[test]
fn arrays_come_back() {
    let fixed: [i64; 3] = [1, -2, i64::MAX];
    let bytes = written(|out| out.block::<28>().put_array(4, &fixed));
    let mut input = Decoder::new(&bytes);
    let block = input.block::<28>().unwrap();
    assert_eq!(block.get::<[i64; 3]>(4), fixed);
    assert_eq!(*block.get_boxed::<[i64; 3]>(4, &mut input).unwrap(), fixed);

    let counted: Vec<u32> = (0..1000).map(|n: u32| n.wrapping_mul(0x01020304)).collect();
    let bytes = written(|out| out.put_counted(&counted, 1000).unwrap());
    assert_eq!(bytes.len(), 4004);
    assert_eq!(strict(&bytes).get_counted(1000), Ok(counted));

    let flags = [true, false, true];
    let bytes = written(|out| out.put_counted_words(&flags, 3).unwrap());
    assert_eq!(strict(&bytes).get_counted_words(3), Ok(flags.to_vec()));
    let mut input = strict(&bytes);
    let block = input.block::<16>().unwrap();
    assert_eq!(block.get_word_array::<bool, 3>(4), Ok(flags));
    let back = block.get_boxed_words::<bool, 3>(4, &mut input);
    assert_eq!(back, Ok(Box::new(flags)));
}

/// Every way to move an array of `N` items moves them as they are moved one by one.
fn is_its_items<T: Blittable + Copy + PartialEq + std::fmt::Debug, const N: usize>(items: [T; N]) {
    let bytes = written(|out| {
        out.put_counted(&items, u32::MAX).expect("no bound");
        out.block_of(N * size_of::<T>()).put_array(0, &items);
    });
    let one_by_one = written(|out| {
        for item in items {
            out.put(item);
        }
    });
    assert_eq!(bytes[..4], (N as u32).to_be_bytes());
    assert_eq!(bytes[4..], one_by_one.repeat(2));

    let mut input = strict(&bytes);
    assert_eq!(input.get_counted(N as u32), Ok(items.to_vec()));
    let block = input.block_of(size_of::<[T; N]>());
    let block = block.expect("the array follows");
    assert_eq!(block.get::<[T; N]>(0), items);
    assert_eq!(
        block.get_boxed::<[T; N]>(0, &mut input),
        Ok(Box::new(items))
    );
}

#[test]
fn arrays_of_every_scalar_are_their_items_one_behind_another() {
    fn at_length<const N: usize>() {
        let numbers: [u64; N] =
            std::array::from_fn(|index| (index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        is_its_items(numbers);
        is_its_items(numbers.map(|number| number as i64));
        is_its_items(numbers.map(|number| number as i64 as f64));
        is_its_items(numbers.map(|number| number as u32));
        is_its_items(numbers.map(|number| number as i32));
        is_its_items(numbers.map(|number| number as i32 as f32));
        is_its_items(numbers.map(|number| u128::from(number).to_be_bytes()));
    }
    at_length::<0>();
    at_length::<1>();
    at_length::<7>();
    at_length::<8>();
    at_length::<16>();
    at_length::<17>();
    at_length::<1000>();
}

#[test]
fn counts_are_held_against_bound_and_bytes() {
    let mut buffer = Buffer::default();
    let error = Encoder::new(&mut buffer)
        .put_counted(&[1i32, 2], 1)
        .unwrap_err();
    assert_eq!(
        error.kind,
        EncodeErrorKind::TooLong {
            length: 2,
            bound: 1
        }
    );
    let claims = [0, 0, 0, 9, 0, 0, 0, 0];
    assert_eq!(
        kind(Decoder::new(&claims).get_counted::<i32>(8)),
        (
            DecodeErrorKind::TooLong {
                length: 9,
                bound: 8
            },
            0
        )
    );
    assert_eq!(
        kind(Decoder::new(&claims).get_counted::<i32>(9)),
        (
            DecodeErrorKind::Truncated {
                needed: 36,
                left: 4
            },
            4
        )
    );
    assert_eq!(
        kind(Decoder::new(&[0, 0, 0, 3, 1, 2, 3]).get_opaque(9)),
        (DecodeErrorKind::Truncated { needed: 4, left: 3 }, 4)
    );
    let endless = [255; 8];
    let nothing = |_: &mut Decoder<'_>| Ok(());
    assert_eq!(
        kind(Decoder::new(&endless).get_vec(u32::MAX, 0, nothing)).0,
        DecodeErrorKind::TooMuchMemory
    );
}

#[test]
fn padding_is_zero_and_strict_mode_checks_it() {
    for length in 0..9u8 {
        let data: Vec<u8> = (1..=length).collect();
        let bytes = written(|out| out.put_opaque(&data, 8).unwrap());
        assert_eq!(bytes.len(), 4 + Xdr::padded(data.len()));
        assert!(bytes[4 + data.len()..].iter().all(|&byte| byte == 0));
        assert_eq!(strict(&bytes).get_opaque(8), Ok(data.clone()));
        assert_eq!(strict(&bytes).get_string(8).unwrap(), data);
    }
    let dirty = [0, 0, 0, 3, 1, 2, 3, 4];
    assert_eq!(Decoder::new(&dirty).get_opaque(8), Ok(vec![1, 2, 3]));
    assert_eq!(
        kind(strict(&dirty).get_opaque(8)),
        (DecodeErrorKind::Padding, 7)
    );
    let mut input = strict(&dirty);
    let block = input.block::<8>().unwrap();
    assert_eq!(block.get_byte_array::<4>(4), Ok([1, 2, 3, 4]));
    assert_eq!(
        block.get_boxed_bytes::<4>(4, &mut input),
        Ok(Box::new([1, 2, 3, 4]))
    );
    assert_eq!(
        kind(block.get_byte_array::<3>(4)),
        (DecodeErrorKind::Padding, 7)
    );
}

#[test]
fn sequences_come_back() {
    let encode = |item: &u8, out: &mut Encoder<'_>| {
        out.put_word(*item);
        Ok(())
    };
    let decode = |input: &mut Decoder<'_>| input.get_word::<u8>();
    let items = vec![1, 2, 3];
    let bytes = written(|out| out.put_vec(&items, 3, encode).unwrap());
    assert_eq!(strict(&bytes).get_vec(3, 4, decode), Ok(items.clone()));
    let mut input = strict(&bytes[4..]);
    assert_eq!(input.get_elements(decode), Ok([1, 2, 3]));
    let short: Result<[u8; 3], _> = strict(&bytes[8..]).get_elements(decode);
    assert_eq!(
        kind(short),
        (DecodeErrorKind::Truncated { needed: 4, left: 0 }, 8)
    );
    let boxed = strict(&bytes[4..]).get_boxed_elements::<_, 3>(decode);
    assert_eq!(boxed, Ok(Box::new([1, 2, 3])));

    let list = written(|out| out.put_list_with(&items, 1, encode).unwrap());
    assert_eq!(list.len(), 28);
    assert_eq!(strict(&list).get_list_with(4, 1, decode), Ok(items.clone()));
    let bare = written(|out| out.put_bare_list_with(&items, 1, encode).unwrap());
    assert_eq!(bare, list[4..]);
    assert_eq!(strict(&bare).get_bare_list_with(4, 1, decode), Ok(items));
    let mut buffer = Buffer::default();
    let error = Encoder::new(&mut buffer)
        .put_bare_list_with(&[], 1, encode)
        .unwrap_err();
    assert_eq!(error.kind, EncodeErrorKind::EmptyList);

    for value in [None, Some(5)] {
        let bytes = written(|out| out.put_optional(value.as_ref(), encode).unwrap());
        assert_eq!(strict(&bytes).get_optional(decode), Ok(value));
    }
    assert_eq!(strict(&[0, 0, 0, 5]).get_boxed(decode), Ok(Box::new(5)));
}

#[test]
fn a_list_without_an_end_is_not_believed() {
    let words = [0, 0, 0, 1].repeat(10_000);
    let nothing = |_: &mut Decoder<'_>| Ok([0u8; 4096]);
    assert_eq!(
        kind(Decoder::new(&words).get_list_with(0, 1, nothing)).0,
        DecodeErrorKind::TooMuchMemory
    );
}

/// A list of nine has room for sixteen, after rooms for one, two, four and eight.
#[test]
fn the_whole_room_of_a_list_is_paid_for() {
    const ITEM: usize = 512;
    let words = [[0, 0, 0, 1].repeat(9), vec![0; 4]].concat();
    let read = |memory_base| {
        let limits = Limits {
            memory_per_byte: 0,
            memory_base,
            ..Limits::default()
        };
        let item = |_: &mut Decoder<'_>| Ok([0_u8; ITEM]);
        let mut input = Decoder::with(&words, DecodeMode::Strict, limits);
        input.get_list_with(0, 1, item)
    };
    let rooms = 1 + 2 + 4 + 8 + 16;
    let items = read(rooms * ITEM).expect("all of it is paid for");
    assert_eq!((items.len(), items.capacity()), (9, 16));
    assert_eq!(
        kind(read(rooms * ITEM - 1)).0,
        DecodeErrorKind::TooMuchMemory
    );
}

#[test]
fn holes_are_zeros_whatever_the_buffer_held() {
    let mut buffer = Buffer::default();
    buffer.extend(&[0xAA; 40]);
    buffer.clear();
    buffer.extend(b"abc");
    let mut out = Encoder::<Lean>::over(&mut buffer);
    out.put(1u8);
    out.align(8, 4);
    out.put(2u8);
    out.align(8, 0);
    out.align(8, 0);
    out.align(1, 0);
    assert_eq!(buffer.as_slice()[3..], [1, 0, 0, 0, 2, 0, 0, 0]);
    let mut input = Decoder::<Lean>::over(
        &buffer.as_slice()[3..],
        DecodeMode::Strict,
        Limits::default(),
    );
    assert_eq!(input.get::<u8>(), Ok(1));
    assert_eq!(input.align(8, 4), Ok(()));
    assert_eq!((input.position(), input.get::<u8>()), (4, Ok(2)));
    assert_eq!(input.align(8, 0), Ok(()));
    assert_eq!(input.left(), 0);
    let cut: [u8; 5] = [1, 0, 0, 0, 2];
    let mut input = Decoder::<Lean>::over(&cut, DecodeMode::Lenient, Limits::default());
    assert!(input.take(5).is_ok());
    let error = input.align(8, 0).expect_err("the hole is not all there");
    assert!(matches!(error.kind, DecodeErrorKind::Truncated { .. }));
}
