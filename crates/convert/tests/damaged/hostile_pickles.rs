//! Pickles that are bad on purpose: they call functions, nest without end, repeat themselves, fill the memory.

use crate::hostile::zip;
use crate::reader::{self, Attempts};

/// A PyTorch file of the older kind around a pickle.
fn stream(pickle: &[u8]) -> Vec<u8> {
    let mut file = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.".to_vec();
    file.extend(b"\x80\x02M\xe9\x03.");
    file.extend(b"\x80\x02}.");
    file.extend(pickle);
    // No storages.
    file.extend(b"\x80\x02].");
    file
}

/// Both kinds of PyTorch files around a pickle.
fn both(pickle: &[u8]) -> [Vec<u8>; 2] {
    let archive = zip(&[("archive/data.pkl", pickle), ("archive/data/0", &[0; 4])]);
    [stream(pickle), archive]
}

fn text(text: &str) -> Vec<u8> {
    let mut bytes = b"X".to_vec();
    bytes.extend((text.len() as u32).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes
}

#[test]
fn functions_are_never_called_and_their_names_are_told() {
    let attempts = Attempts::new();
    let command = text(&format!("touch {}", attempts.path("executed")));
    let names = [
        ("os", "system"),
        ("posix", "system"),
        ("nt", "system"),
        ("subprocess", "Popen"),
        ("builtins", "eval"),
        ("builtins", "exec"),
        ("builtins", "getattr"),
        ("builtins", "__import__"),
        ("__builtin__", "apply"),
        ("importlib", "import_module"),
        ("runpy", "run_path"),
        ("pickle", "loads"),
        ("torch", "load"),
        ("torch.hub", "load"),
        ("torch._utils", "_import_dotted_name"),
        ("numpy", "load"),
        ("numpy.testing._private.utils", "runstring"),
        ("collections", "namedtuple"),
        ("fairseqs", "anything"),
        ("__main__", "Model"),
        ("", ""),
    ];
    for (module, name) in names {
        let global = [b"c", module.as_bytes(), b"\n", name.as_bytes(), b"\n"].concat();
        let from_stack = [&text(module)[..], &text(name), b"\x93"].concat();
        let pickles = [
            // A call by each way to name a function.
            [b"\x80\x02", &global[..], b"(", &command, b"tR."].concat(),
            [b"\x80\x04", &from_stack[..], &command, b"\x85R."].concat(),
            // The name alone, an object of it, and a call as state and inside of a tensor.
            [&global[..], b"."].concat(),
            [&global[..], b")\x81}b."].concat(),
            [
                b"ccollections\nOrderedDict\n)R",
                &global[..],
                &command,
                b"\x85Rb.",
            ]
            .concat(),
            [
                b"ctorch._utils\n_rebuild_tensor_v2\n",
                &global[..],
                &command,
                b"\x85R\x85R.",
            ]
            .concat(),
            [b"ccollections\ndefaultdict\n", &global[..], b"\x85R."].concat(),
        ];
        for pickle in pickles {
            for file in both(&pickle) {
                let message = attempts.refuse(name, reader::torch, &file);
                let told = message.contains(&format!("the pickle asks for `{module}.{name}`"));
                assert!(told, "{message}");
            }
        }
    }
    // The oldest ways of calling are not read at all, and neither are numbers that stand for functions.
    for opcodes in [
        &b"(S'ls'\nios\nsystem\n."[..],
        b"(cos\nsystem\no.",
        b"\x82\x01.",
        b"Pos\n.",
    ] {
        for file in both(opcodes) {
            attempts.refuse("an old opcode", reader::torch, &file);
        }
    }
    assert!(attempts.leftovers().is_empty(), "a command was executed");
}

#[test]
fn nesting_cycles_and_repetition_end_soon() {
    let attempts = Attempts::new();
    let deep = |depth: usize| [vec![b']'; depth], vec![b'a'; depth - 1], b".".to_vec()].concat();
    // A list of 20 times the list before it, 40 times over: 20 to the power of 40 values.
    let mut laughs = b"]q\x00".to_vec();
    for level in 1..40u8 {
        laughs.extend(b"](");
        laughs.extend([b'h', level - 1].repeat(20));
        laughs.extend([b'e', b'q', level]);
    }
    laughs.push(b'.');
    // Names get longer at each level, with one long key.
    let key = text(&"k".repeat(3000));
    let long_names = [
        &b"}"[..],
        &key,
        b"q\x01",
        &b"}h\x01".repeat(50),
        b"N",
        &[b's'; 51],
        b".",
    ];
    let pickles: [(&str, Vec<u8>); 9] = [
        ("nested 1000 deep", deep(1000)),
        ("nested 100000 deep", deep(100_000)),
        ("nested 5000000 deep", deep(5_000_000)),
        ("a list in itself", b"]q\x00h\x00a.".to_vec()),
        (
            "a dictionary in itself",
            [b"}q\x00", &text("a")[..], b"h\x00s."].concat(),
        ),
        (
            "an object in itself",
            b"cargparse\nNamespace\n)\x81q\x00h\x00b.".to_vec(),
        ),
        ("two to the power of many", laughs),
        ("names without end", long_names.concat()),
        ("parameters of parameters", parameters(1000)),
    ];
    for (what, pickle) in pickles {
        for file in both(&pickle) {
            attempts.refuse(what, reader::torch, &file);
        }
    }
    for (what, depth) in [("nested 10 deep", 10), ("nested 60 deep", 60)] {
        let (result, _) = attempts.read(what, reader::torch, &stream(&deep(depth)));
        assert!(result.is_ok(), "{what} was refused");
    }
}

/// A call of `_rebuild_parameter` with itself as argument, over and over.
fn parameters(depth: usize) -> Vec<u8> {
    let mut pickle = b"ctorch._utils\n_rebuild_parameter\nq\x00N\x85R".to_vec();
    for _ in 0..depth {
        pickle.extend(b"q\x01h\x00h\x01\x85R");
    }
    pickle.push(b'.');
    pickle
}

#[test]
fn pickles_that_fill_the_memory_are_refused() {
    let attempts = Attempts::new();
    let large = [&b"("[..], &[b'N'; 40_000], b"t0"].concat();
    let repeated: [(&str, &[u8], &[u8]); 20] = [
        ("nothing", b"", b"N"),
        ("numbers", b"", b"K\x01"),
        ("wide numbers", b"", b"\x8b\x00\x00\x00\x00"),
        ("empty texts", b"", b"\x8c\x00"),
        ("empty lists", b"", b"]"),
        ("empty dictionaries", b"", b"}"),
        ("marks", b"", b"("),
        ("marks and tuples", b"", b"(t"),
        ("tuples of nothing after a large one", &large, b"(t0"),
        ("tuples of tuples", b"N", b"\x85"),
        ("a value again and again", b"N", b"2"),
        ("one memo again and again", b"Nq\x00", b"h\x00"),
        ("a new memo each time", b"N", b"\x94"),
        ("globals", b"", b"ctorch\nSize\n"),
        ("calls", b"ctorch\nSize\nq\x000", b"h\x00)R"),
        ("persistent ids", b"N", b"Q"),
        ("a list that grows", b"]Nq\x000", b"h\x00a"),
        ("a dictionary that grows", b"}Nq\x000", b"h\x00h\x00s"),
        ("states", b"ctorch\nSize\n)R", b"Nb"),
        ("frames", b"", b"\x95\xff\xff\xff\xff\xff\xff\xff\xff"),
    ];
    for (what, begin, part) in repeated {
        for size in [200_000, 6_000_000] {
            let mut pickle = begin.to_vec();
            pickle.extend(part.repeat(size / part.len()));
            pickle.push(b'.');
            for file in both(&pickle) {
                // A few of the small ones hold nothing but a large list, which fits.
                let (result, _) = attempts.read(what, reader::torch, &file);
                assert!(
                    size < 1_000_000 || result.is_err(),
                    "{what}: it was accepted"
                );
            }
        }
    }
}

#[test]
fn tensors_that_reach_beyond_their_storage_are_refused() {
    let attempts = Attempts::new();
    let storage = |count: &[u8]| {
        let begin = [
            &b"("[..],
            &text("storage"),
            b"ctorch\nFloatStorage\n",
            &text("0"),
        ];
        [&begin.concat()[..], &text("cpu"), count, b"tQ"].concat()
    };
    let file = |count: &[u8], offset: &[u8], shape: &[u8], strides: &[u8]| {
        let tensor = [&storage(count)[..], offset, shape, strides, b"\x89}"].concat();
        let rebuild = b"ctorch._utils\n_rebuild_tensor_v2\n(";
        let pickle = [&b"}"[..], &text("w"), rebuild, &tensor, b"tRs."].concat();
        zip(&[("archive/data.pkl", &pickle), ("archive/data/0", &[0; 4])])
    };
    let one = b"K\x01";
    let good = file(one, b"K\x00", b"K\x01\x85", b"K\x01\x85");
    assert!(attempts.read("one number", reader::torch, &good).0.is_ok());
    let huge = b"\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f";
    let wide = [&huge[..], b"\x85"].concat();
    let million = b"J\x00\x00\x00\x40\x85";
    let cases = [
        (
            "an offset beyond the end",
            file(one, one, b"K\x01\x85", b"K\x01\x85"),
        ),
        (
            "a shape beyond the end",
            file(one, b"K\x00", b"K\x02\x85", b"K\x01\x85"),
        ),
        ("a huge offset", file(one, huge, b"K\x01\x85", b"K\x01\x85")),
        ("a huge shape", file(one, b"K\x00", &wide, b"K\x01\x85")),
        ("a huge stride", file(one, b"K\x00", b"K\x02\x85", &wide)),
        (
            "one number a billion times",
            file(one, b"K\x00", million, b"K\x00\x85"),
        ),
        (
            "a negative shape",
            file(one, b"K\x00", b"J\xff\xff\xff\xff\x85", b"K\x01\x85"),
        ),
        (
            "strides of another rank",
            file(one, b"K\x00", b"K\x01\x85", b")"),
        ),
        (
            "a storage of another size",
            file(b"K\x02", b"K\x00", b"K\x01\x85", b"K\x01\x85"),
        ),
        (
            "a storage of huge size",
            file(huge, b"K\x00", b"K\x01\x85", b"K\x01\x85"),
        ),
    ];
    for (what, file) in cases {
        let message = attempts.refuse(what, reader::torch, &file);
        assert!(message.contains("`w`"), "{what}: {message}");
    }
}
