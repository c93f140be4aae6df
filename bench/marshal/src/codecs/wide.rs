//! wincode with the record of 1000 members, if its code was built: `--features wide`.

use std::rc::Rc;

use crate::entrant::Entrant;
use crate::values::Members1000;

/// wincode, ready for the record.
#[cfg(feature = "wide")]
pub fn wide_wincode(value: &Rc<Members1000>) -> Result<Entrant, String> {
    use crate::entrant::Codec;
    use tenon_bench_marshal_wide::Members1000 as Wide;

    #[derive(Default)]
    struct Wincode(Vec<u8>);

    impl Codec<Wide> for Wincode {
        const NAME: &'static str = "wincode";

        fn encode(&mut self, value: &Wide) -> &[u8] {
            self.0.clear();
            value.encode(&mut self.0);
            &self.0
        }

        fn decode(&mut self, bytes: &[u8]) -> Wide {
            Wide::decode(bytes)
        }
    }

    let mut members = value.members().into_iter();
    let wide = Wide::from_values(|| members.next().expect("1000 members"));
    Entrant::of(Wincode::default, &Rc::new(wide))
}

/// wincode was not built.
#[cfg(not(feature = "wide"))]
pub fn wide_wincode(_: &Rc<Members1000>) -> Result<Entrant, String> {
    Err(
        "wincode, over whose code for 1000 members rustc takes minutes: only when everything is \
         measured"
            .to_owned(),
    )
}
