//! What one contestant's figure is divided by another's.

/// Two contestants and the figure in which they are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ratio {
    /// Who is divided.
    pub over: &'static str,
    /// By whom.
    pub under: &'static str,
    /// Of what.
    pub figure: Figure,
}

/// A figure of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// What counts in the row: the time of a call, or calls per second.
    Main,
    /// The 99th percentile of the calls' times.
    P99,
}

impl Ratio {
    /// A ratio of what counts in the row.
    pub fn of(over: &'static str, under: &'static str) -> Self {
        let figure = Figure::Main;
        Self {
            over,
            under,
            figure,
        }
    }

    /// A ratio of the 99th percentiles of times.
    pub fn of_p99(over: &'static str, under: &'static str) -> Self {
        let figure = Figure::P99;
        Self {
            over,
            under,
            figure,
        }
    }

    /// `tonic_over_tenon` or `p99.tenon_over_raw`, for instance. libtirpc speaks ONC RPC, and so is compared with
    /// Tenon's.
    pub fn name(self) -> String {
        let pair = match (self.over, self.under) {
            ("libtirpc", _) => "libtirpc_over_tenon".to_owned(),
            (_, "libtirpc") => "tenon_over_libtirpc".to_owned(),
            ("tenon_udp", _) => "udp_over_tenon".to_owned(),
            (_, "tenon_udp") => "tenon_over_udp".to_owned(),
            ("tenon_metadata", _) => "metadata_over_none".to_owned(),
            ("tenon_middleware", _) => "middleware5_over_none".to_owned(),
            ("tenon_tcp", _) => "tcp_over_exchange".to_owned(),
            (_, "tenon_tcp") => "exchange_over_tcp".to_owned(),
            (over, under) => format!("{}_over_{}", short(over), short(under)),
        };
        format!("{}{pair}", self.figure.prefix("."))
    }

    /// Its column in tables.
    pub fn heading(self) -> String {
        format!("{}{}/{}", self.figure.prefix(" "), self.over, self.under)
    }
}

impl Figure {
    fn prefix(self, behind: &str) -> String {
        match self {
            Self::Main => String::new(),
            Self::P99 => format!("p99{behind}"),
        }
    }
}

/// A contestant in the names of ratios.
fn short(name: &'static str) -> &'static str {
    if name == "tenon_tokio" { "tokio" } else { name }
}
