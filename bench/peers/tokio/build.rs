// Tells the programs which versions they are built from, so that the table names what was measured: those of Cargo.lock,
// which cargo has written by the time it runs this.

use std::path::Path;

/// Of the crate's entry in a lock file: name = "NAME", then version = "VERSION".
fn locked_version<'a>(lock: &'a str, name: &str) -> &'a str {
    let entry = format!("name = \"{}\"\nversion = \"", name);
    let start = lock.find(&entry).expect(name) + entry.len();
    lock[start..].split('"').next().unwrap()
}

fn main() {
    let path = Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("Cargo.lock");
    let lock = std::fs::read_to_string(&path).unwrap();
    for name in ["tokio", "crossbeam-channel"] {
        let variable = name.to_uppercase().replace('-', "_");
        println!("cargo:rustc-env={}_VERSION={}", variable, locked_version(&lock, name));
    }
    println!("cargo:rerun-if-changed={}", path.display());
}
