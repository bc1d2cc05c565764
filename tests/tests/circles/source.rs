//! The modules of a crate, and which of them uses which, by its source.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use syn::visit::{Visit, visit_item};
use syn::{Attribute, File, Item, UseTree, Visibility};

/// A module's path from the crate's root.
type Module = Vec<String>;

/// A path as it is written.
type Written = Vec<String>;

#[derive(Default)]
struct Parsed {
    /// Names that the module defines itself.
    defines: BTreeSet<String>,
    /// What names come from elsewhere, and whether others find them here, too.
    imports: BTreeMap<String, (Written, bool)>,
    /// Paths from which all names come.
    globs: Vec<Written>,
    paths: BTreeSet<Written>,
}

/// A crate's source.
pub(crate) struct Source {
    modules: BTreeMap<Module, Parsed>,
}

impl Source {
    /// Reads all files below `src`, but for tests.
    pub(crate) fn read(src: &Path) -> Source {
        let mut modules = BTreeMap::new();
        read_folder(src, &[], &mut modules);
        Source { modules }
    }

    /// All modules that have modules below them.
    pub(crate) fn folders(&self) -> BTreeSet<Module> {
        let parents =
            |path: &Module| (0..path.len()).map(|at| path[..at].to_vec()).collect();
        self.modules.keys().flat_map::<Vec<Module>, _>(parents).collect()
    }

    /// Each module, and those that define what it uses.
    pub(crate) fn uses(&self) -> BTreeMap<&Module, BTreeSet<Module>> {
        let used = |(module, parsed): (&'_ Module, &Parsed)| {
            let imports = parsed.imports.values().filter(|(_, public)| !public);
            let written = imports.map(|(path, _)| path).chain(&parsed.paths);
            written.filter_map(|path| self.definer(module, path, 0)).collect()
        };
        self.modules
            .iter()
            .map(|(module, parsed)| (module, used((module, parsed))))
            .collect()
    }

    /// The module that defines what is written so in `module`. (An import of a whole module
    /// counts only where something of it is used.)
    fn definer(&self, module: &Module, path: &Written, depth: usize) -> Option<Module> {
        // An import that leads back to itself is nothing that compiles.
        if depth > 8 {
            return None;
        }
        let (first, rest) = path.split_first()?;
        let parsed = self.modules.get(module)?;
        let mut at = match first.as_str() {
            "crate" => Vec::new(),
            "self" => module.clone(),
            "super" => module.split_last()?.1.to_vec(),
            name if self.modules.contains_key(&child(module, name)) => {
                child(module, name)
            }
            name => {
                if parsed.defines.contains(name) {
                    return Some(module.clone());
                }
                let (from, _) = parsed.imports.get(name)?;
                let whole: Written = from.iter().chain(rest).cloned().collect();
                return (whole != *path)
                    .then(|| self.definer(module, &whole, depth + 1))?;
            }
        };
        for (number, name) in rest.iter().enumerate() {
            if name == "super" {
                at.pop();
                continue;
            }
            let next = child(&at, name);
            if self.modules.contains_key(&next) {
                at = next;
                continue;
            }
            let here = self.modules.get(&at)?;
            if !here.defines.contains(name) && at != *module {
                let rest = &rest[number..];
                let named = here.imports.contains_key(name).then(|| rest.to_vec());
                if let Some(path) = named {
                    return self.definer(&at, &path, depth + 1);
                }
                for glob in &here.globs {
                    let path: Written = glob.iter().chain(rest).cloned().collect();
                    if let Some(found) = self.definer(&at, &path, depth + 1) {
                        return Some(found);
                    }
                }
            }
            return Some(at);
        }
        // A module as a whole.
        None
    }
}

fn child(module: &[String], name: &str) -> Module {
    module.iter().cloned().chain([name.to_owned()]).collect()
}

fn read_folder(folder: &Path, path: &[String], modules: &mut BTreeMap<Module, Parsed>) {
    for entry in std::fs::read_dir(folder).expect("a folder of source") {
        let file = entry.expect("an entry").path();
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if file.is_dir() {
            if !["bin", "tests"].contains(&name.as_str()) {
                read_folder(&file, &child(path, &name), modules);
            }
        } else if file.extension().is_some_and(|it| it == "rs") && name != "tests" {
            let module = match name.as_str() {
                "lib" | "main" | "mod" => path.to_vec(),
                _ => child(path, &name),
            };
            let text = std::fs::read_to_string(&file).expect("source");
            let syntax: File = syn::parse_file(&text)
                .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let mut parsed = Parsed::default();
            syntax.items.iter().for_each(|item| parsed.item(item));
            modules.insert(module, parsed);
        }
    }
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|it| {
        it.path().is_ident("cfg")
            && it.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test")
    })
}

impl Parsed {
    fn item(&mut self, item: &Item) {
        let name = match item {
            Item::Use(it) => {
                if !is_for_tests(&it.attrs) {
                    let public = !matches!(it.vis, Visibility::Inherited);
                    self.import(&it.tree, &mut Vec::new(), public);
                }
                return;
            }
            Item::Mod(it) if is_for_tests(&it.attrs) => return,
            Item::Struct(it) => Some(&it.ident),
            Item::Enum(it) => Some(&it.ident),
            Item::Fn(it) if is_for_tests(&it.attrs) => return,
            Item::Fn(it) => Some(&it.sig.ident),
            Item::Trait(it) => Some(&it.ident),
            Item::Const(it) => Some(&it.ident),
            Item::Static(it) => Some(&it.ident),
            Item::Type(it) => Some(&it.ident),
            Item::Macro(it) => it.ident.as_ref(),
            _ => None,
        };
        self.defines.extend(name.map(ToString::to_string));
        visit_item(self, item);
    }

    fn import(&mut self, tree: &UseTree, above: &mut Written, public: bool) {
        let mut named = |last: Option<String>, here: String| {
            let path: Written = above.iter().cloned().chain(last).collect();
            self.imports.insert(here, (path, public));
        };
        match tree {
            UseTree::Path(path) => {
                above.push(path.ident.to_string());
                self.import(&path.tree, above, public);
                above.pop();
            }
            UseTree::Name(name) if name.ident == "self" => {
                named(None, above.last().cloned().unwrap_or_default());
            }
            UseTree::Name(name) => {
                named(Some(name.ident.to_string()), name.ident.to_string());
            }
            UseTree::Rename(name) if name.ident == "self" => {
                named(None, name.rename.to_string());
            }
            UseTree::Rename(name) => {
                named(Some(name.ident.to_string()), name.rename.to_string());
            }
            UseTree::Glob(_) => self.globs.push(above.clone()),
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.import(tree, above, public));
            }
        }
    }
}

impl<'ast> Visit<'ast> for Parsed {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            let names = path.segments.iter().map(|segment| segment.ident.to_string());
            self.paths.insert(names.collect());
        }
        syn::visit::visit_path(self, path);
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_for_tests(&module.attrs) {
            syn::visit::visit_item_mod(self, module);
        }
    }
}
