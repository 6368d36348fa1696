//! The words that decide whether a period ends a sentence: abbreviations and first words.
//!
//! [`super::split`] asks them; a word that is missing here costs a sentence too many, a word too much
//! costs a sentence too few, which the model minds less. All are written without their last period.

/// Something always follows these: a name or an explanation.
pub(super) const TITLES: &[&str] = &[
    // German
    "Dr", "Prof", "Hr", "Hrn", "Fr", "Frl", "Dipl", "Ing", "Hl", "hl", "Kard", "z.B", "Z.B", "d.h",
    "D.h", "u.a", "U.a", "i.d.R", "o.ä", "m.E", "s.o", "s.u", "bzw", "ca", "Ca", "vgl", "Vgl",
    "evtl", "Evtl", "ggf", "Ggf", "inkl", "Inkl", "exkl", "zzgl", "bspw", "sog", "geb", "insb",
    "einschl", "max", "mind", "Std.-Nr", "c/o", // English
    "Mr", "Mrs", "Ms", "Mx", "Messrs", "Mmes", "Rev", "Hon", "Capt", "Col", "Cmdr", "Lt", "Maj",
    "Sgt", "Gov", "Sen", "Rep", "Pres", "Supt", "e.g", "E.g", "eg", "i.e", "I.e", "vs", "viz",
    "approx",
];

/// A number follows these; without one the period ends the sentence (`No. I do not.`).
pub(super) const BEFORE_NUMBERS: &[&str] = &[
    "Nr", "nr", "Nrn", "Abb", "Abs", "Art", "Bd", "Kap", "Tab", "Tel", "tel", "Ziff", "Hs", "Bl",
    "Anm", "Aufl", "Jg", "Pos", "Str", "S", "No", "no", "Nos", "Vol", "vol", "Fig", "fig", "Figs",
    "Ch", "ch", "Sec", "sec", "Eq", "pp", "p", "Pt", "Ex", "ext",
];

/// These can stand anywhere, at the end too: what follows decides.
pub(super) const ABBREVIATIONS: &[&str] = &[
    // German
    "usw", "etc", "Mio", "Mrd", "Bio", "Tsd", "Jh", "Jhd", "Jhdt", "Str", "St", "Nr", "Abb", "Tel",
    "Std", "Min", "Sek", "min", "Fa", "Co", "Ges", "gest", "verh", "gegr", "städt", "staatl", "ev",
    "kath", "österr", "dt", "engl", "frz", "lat", "griech", "amerik", "jap", "allg", "bes", "gem",
    "lt", "o.g", "u.s.w", "u.U", "Hbf", "Bhf", "Pl", "Mo", "Di", "Mi", "Do", "Sa", "So", "Jan",
    "Feb", "Mrz", "Apr", "Jun", "Jul", "Aug", "Sep", "Sept", "Okt", "Nov", "Dez", "Mwst", "MwSt",
    // English
    "Inc", "Ltd", "Corp", "Bros", "Jr", "Sr", "Esq", "Ph.D", "Gen", "Ave", "Blvd", "Rd", "Sq", "Mt",
    "Ft", "Oct", "Dec", "Mon", "Tue", "Wed", "Thu", "Fri", "Univ", "Dept",
];

/// Words that are rarely written with a capital inside a sentence, and often begin one.
pub(super) const FIRST_WORDS: &[&str] = &[
    // German
    "Ich", "Du", "Er", "Sie", "Es", "Wir", "Ihr", "Man", "Das", "Der", "Die", "Den", "Dem", "Ein",
    "Eine", "Einen", "Einer", "Dies", "Diese", "Dieser", "Dieses", "Mein", "Meine", "Dein",
    "Deine", "Sein", "Seine", "Ihre", "Unser", "Unsere", "Und", "Aber", "Oder", "Denn", "Doch",
    "Dann", "Da", "Danach", "Damals", "Dort", "Hier", "Heute", "Gestern", "Jetzt", "Nun", "Als",
    "Wenn", "Weil", "Obwohl", "Trotzdem", "Deshalb", "Darum", "Auch", "Nur", "In", "Im", "Am",
    "An", "Auf", "Bei", "Mit", "Nach", "Von", "Vor", "Zu", "Für", "Wer", "Wie", "Wo", "Was",
    "Wann", "Warum", "Ja", "Nein", "Nicht", "Kein", "Keine", "Bitte", "Danke", // English
    "I", "You", "He", "She", "It", "We", "They", "The", "A", "This", "That", "These", "Those",
    "There", "My", "Your", "His", "Her", "Our", "Their", "And", "But", "Or", "So", "Then", "If",
    "When", "What", "Why", "How", "Who", "Yes", "No",
];
