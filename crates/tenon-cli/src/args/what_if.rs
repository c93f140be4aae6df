//! What is faster in a projection of an account.

use std::str::FromStr;

/// What may be faster than it was measured to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactorName {
    /// All software, of the kernels, too.
    Cpu,
    /// What carries packets from one driver to the other.
    Wire,
    /// Waking the thread that waits for a packet.
    Wakeup,
    /// Writing headers and checksums, and copying into the kernel.
    Headers,
    /// The code of client and server outside of the kernel.
    Stubs,
}

/// How many times as fast something would be; 0 leaves its time out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Factor {
    /// What would be faster.
    pub name: FactorName,
    /// How many times as fast.
    pub times: f64,
}

impl FactorName {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Cpu,
        Self::Wire,
        Self::Wakeup,
        Self::Headers,
        Self::Stubs,
    ];

    /// Returns the name on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Wire => "wire",
            Self::Wakeup => "wakeup",
            Self::Headers => "headers",
            Self::Stubs => "stubs",
        }
    }
}

impl FromStr for Factor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((name, times)) = text.split_once('=') else {
            return Err(format!("`{text}` is not NAME=FACTOR; write cpu=10"));
        };
        let found = FactorName::ALL.into_iter().find(|it| it.word() == name);
        let Some(found) = found else {
            let words = FactorName::ALL.map(FactorName::word).join(", ");
            return Err(format!(
                "nothing is called `{name}` here; there are {words}"
            ));
        };
        let number = times.parse().ok();
        let Some(number) = number.filter(|it: &f64| it.is_finite() && *it >= 0.0) else {
            return Err(format!(
                "`{times}` does not say how many times as fast: 10 for ten times, 0 to leave the time out"
            ));
        };
        Ok(Self {
            name: found,
            times: number,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_read_and_errors_say_what_there_is() {
        let read = |text: &str| text.parse::<Factor>();
        let cpu = Factor {
            name: FactorName::Cpu,
            times: 10.0,
        };
        assert_eq!(read("cpu=10"), Ok(cpu));
        assert_eq!(read("wakeup=0").map(|factor| factor.times), Ok(0.0));
        assert_eq!(read("wire=2.5").map(|factor| factor.times), Ok(2.5));
        for (text, error) in [
            ("cpu", "`cpu` is not NAME=FACTOR; write cpu=10"),
            (
                "disk=2",
                "nothing is called `disk` here; there are cpu, wire, wakeup, headers, stubs",
            ),
            (
                "cpu=-1",
                "`-1` does not say how many times as fast: 10 for ten times, 0 to leave the time out",
            ),
        ] {
            assert_eq!(read(text), Err(error.to_owned()));
        }
        for times in ["", "x", "inf", "NaN", "10x"] {
            assert!(read(&format!("cpu={times}")).is_err(), "{times}");
        }
    }
}
