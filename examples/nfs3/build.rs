//! Temporary.
fn main() {
    for n in ["nfs3", "mount3"] {
        let p = format!("../../interfaces/{n}.x");
        println!("cargo:rerun-if-changed={p}");
        let parsed = tenon_idl::parse_file(std::path::Path::new(&p), &Default::default());
        let s = parsed.schema.as_ref().unwrap();
        let mut plans = tenon_plan::lower(s).unwrap();
        tenon_plan::specialize(s, &mut plans, &tenon_plan::Pass::ALL).unwrap();
        let o = tenon_gen::rust::Options {
            source: p.clone(),
            for_include: true,
            ..Default::default()
        };
        std::fs::write(
            format!("{}/{n}.rs", std::env::var("OUT_DIR").unwrap()),
            tenon_gen::rust::generate(s, &plans, &o),
        )
        .unwrap();
    }
}
