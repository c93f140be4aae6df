//! Lean calls of the same kind again and again, for what counts their costs.

use std::sync::Arc;

use tenon::{Address, ChannelOptions, Client, LeanInput};

use super::caller::{PROGRAM, VERSION};
use super::lean_caller::{ECHO, interface};

/// Bytes of the larger call and its result.
const LARGE: usize = 1440;

/// A client over everything that a server listens at.
pub fn clients(addresses: &[Address]) -> Vec<Client> {
    let addresses = addresses.iter();
    addresses
        .map(|address| client(&format!("lean+{address}")))
        .collect()
}

pub fn client(address: &str) -> Client {
    client_with(address, ChannelOptions::default())
}

pub fn client_with(address: &str, options: ChannelOptions) -> Client {
    let client = Client::connect_with(address, PROGRAM, VERSION, options).unwrap();
    client.with_interface(Arc::new(interface()))
}

/// Makes an empty call or a large one, by turns, and looks at the result.
pub fn call(client: &Client, number: u32) {
    let size = match number % 2 {
        0 => 0,
        _ => LARGE,
    };
    echo(client, size);
}

/// Makes a call of so many bytes, and looks at the result.
pub fn echo(client: &Client, size: usize) {
    let echoed = client.lean().call(
        ECHO.into(),
        |out| {
            out.room(size).fill(7);
            Ok(())
        },
        |input| match input {
            LeanInput::Native(input) => Ok(input.take(input.left())?.len()),
            LeanInput::Swapped(input) => Ok(input.take(input.left())?.len()),
        },
    );
    assert_eq!(echoed.unwrap(), size);
}
