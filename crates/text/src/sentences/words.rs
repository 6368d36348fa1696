//! The words that decide whether a period ends a sentence, language by language: abbreviations and first words.
//!
//! `ends` asks them; a word that is missing here costs a sentence too many, a word too much costs a
//! sentence too few, which the model minds less. All are written without their last period.

/// What is different from language to language.
pub(super) struct Rules {
    /// Something always follows these: a name or an explanation.
    pub titles: Words,
    /// A number follows these; without one the period ends the sentence (`No. I do not.`).
    pub before_numbers: Words,
    /// These can stand anywhere, at the end too: what follows decides.
    pub abbreviations: Words,
    /// Words that are rarely written with a capital inside a sentence, and often begin one.
    pub first_words: Words,
    /// Whether a period makes a number an ordinal: `3. Mai`.
    pub ordinals: bool,
    /// Whether `;` is the question mark.
    pub semicolon_asks: bool,
    /// Words that stay lowercase at the start of a sentence, behind their apostrophe.
    pub apostrophe_words: &'static [&'static str],
}

/// A list of words, separated by spaces.
pub(super) struct Words {
    list: &'static str,
    /// Whether the first letter may also be a capital, and an elided article come before.
    any_case: bool,
}

impl Words {
    pub(super) fn has(&self, word: &str) -> bool {
        let is_listed = |word: &str| self.list.split(' ').any(|listed| listed == word);
        if is_listed(word) || !self.any_case {
            return !word.is_empty() && is_listed(word);
        }
        // `L'ing` is an `ing`.
        let word = word.rsplit(['\'', '’']).next().unwrap_or_default();
        let mut letters = word.chars();
        let first = letters.next().into_iter().flat_map(char::to_lowercase);
        is_listed(&first.chain(letters).collect::<String>())
    }
}

impl Rules {
    /// The rules of a language by its two-letter code; those of German and English if it has none.
    pub(super) fn of(code: &str) -> &'static Self {
        let mut languages = LANGUAGES.iter();
        let found = languages.find(|(codes, _)| codes.split(' ').any(|own| own == code));
        found.map_or(&GERMAN_AND_ENGLISH, |(_, rules)| rules)
    }

    const fn new(
        titles: &'static str,
        before_numbers: &'static str,
        abbreviations: &'static str,
        first_words: &'static str,
    ) -> Self {
        const fn words(list: &'static str) -> Words {
            Words {
                list,
                any_case: true,
            }
        }
        Self {
            titles: words(titles),
            before_numbers: words(before_numbers),
            abbreviations: words(abbreviations),
            first_words: Words {
                list: first_words,
                any_case: false,
            },
            ordinals: false,
            semicolon_asks: false,
            apostrophe_words: &[],
        }
    }

    const fn with_ordinals(mut self) -> Self {
        self.ordinals = true;
        self
    }
}

/// People mix these two. Many of their abbreviations are words with a capital (`Max.`), so case counts.
const GERMAN_AND_ENGLISH: Rules = Rules {
    titles: exact(
        "Dr Prof Hr Hrn Fr Frl Dipl Ing Hl hl Kard z.B Z.B d.h D.h u.a U.a i.d.R o.ä m.E s.o s.u bzw ca \
         Ca vgl Vgl evtl Evtl ggf Ggf inkl Inkl exkl zzgl bspw sog geb insb einschl max mind Std.-Nr c/o \
         Mr Mrs Ms Mx Messrs Mmes Rev Hon Capt Col Cmdr Lt Maj Sgt Gov Sen Rep Pres Supt e.g E.g eg i.e \
         I.e vs viz approx",
    ),
    before_numbers: exact(
        "Nr nr Nrn Abb Abs Art Bd Kap Tab Tel tel Ziff Hs Bl Anm Aufl Jg Pos Str S No no Nos Vol vol Fig \
         fig Figs Ch ch Sec sec Eq pp p Pt Ex ext",
    ),
    abbreviations: exact(
        "usw etc Mio Mrd Bio Tsd Jh Jhd Jhdt Str St Nr Abb Tel Std Min Sek min Fa Co Ges gest verh gegr \
         städt staatl ev kath österr dt engl frz lat griech amerik jap allg bes gem lt o.g u.s.w u.U Hbf \
         Bhf Pl Mo Di Mi Do Sa So Jan Feb Mrz Apr Jun Jul Aug Sep Sept Okt Nov Dez Mwst MwSt Inc Ltd Corp \
         Bros Jr Sr Esq Ph.D Gen Ave Blvd Rd Sq Mt Ft Oct Dec Mon Tue Wed Thu Fri Univ Dept",
    ),
    first_words: exact(
        "Ich Du Er Sie Es Wir Ihr Man Das Der Die Den Dem Ein Eine Einen Einer Dies Diese Dieser Dieses \
         Mein Meine Dein Deine Sein Seine Ihre Unser Unsere Und Aber Oder Denn Doch Dann Da Danach Damals \
         Dort Hier Heute Gestern Jetzt Nun Als Wenn Weil Obwohl Trotzdem Deshalb Darum Auch Nur In Im Am \
         An Auf Bei Mit Nach Von Vor Zu Für Wer Wie Wo Was Wann Warum Ja Nein Nicht Kein Keine Bitte Danke \
         I You He She It We They The A This That These Those There My Your His Her Our Their And But Or So \
         Then If When What Why How Who Yes No",
    ),
    ordinals: true,
    semicolon_asks: false,
    apostrophe_words: &[],
};

const fn exact(list: &'static str) -> Words {
    Words {
        list,
        any_case: false,
    }
}

/// The rules of other languages, by their codes.
const LANGUAGES: &[(&str, Rules)] = &[
    ("fr", FRENCH),
    ("es gl ca", SPANISH),
    ("it", ITALIAN),
    ("pt", PORTUGUESE),
    ("nl af", DUTCH),
    ("pl", POLISH),
    ("cs sk", CZECH),
    ("ru be bg mk", RUSSIAN),
    ("uk", UKRAINIAN),
    ("sv da no nb nn is", SCANDINAVIAN),
    ("fi et", FINNISH),
    ("hu", HUNGARIAN),
    ("ro", ROMANIAN),
    ("hr sr bs sl", CROATIAN),
    ("tr az", TURKISH),
    ("el", GREEK),
    ("ar fa ur", ARABIC),
    ("hi mr ne", HINDI),
];

const FRENCH: Rules = Rules::new(
    "M MM Mme Mmes Mlle Mlles Mgr Dr Drs Pr Prof Me Ste p.ex ex c.-à-d cf env av apr éd dir sq boul",
    "no n art chap fig p pp vol t tél réf al par § ch sect",
    "etc St J.-C av.J.-C apr.J.-C Cie Sté janv févr juil sept oct nov déc min max hab",
    "Je Tu Il Elle On Nous Vous Ils Elles Le La Les Un Une Des L Ce Cet Cette Ces C Mon Ma Mes Ton Ta Son Sa \
     Ses Notre Votre Leur Et Mais Ou Donc Or Ni Car Puis Alors Ensuite Quand Si Comme Dans En À Au Aux Pour \
     Par Sur Avec Sans Qui Que Quoi Où Comment Pourquoi Oui Non Ne Pas Y J",
);

const SPANISH: Rules = Rules::new(
    "Sr Sra Sres Sras Srta Dr Dra Dres D Dña Prof Profa Lic Ing Arq Gral Cnel Cap Tte Sgto Mons Fr Sto Sta EE FF RR p.ej \
     ej cf cfr aprox av avda c ctra pza gral vs",
    "núm n no pág págs p pp art cap fig vol tel tfno t nº ed inc",
    "etc Ud Uds Vd Vds EE.UU FF.AA RR.HH a.C d.C S.A S.L Cía Inc Ltda ene feb abr jun jul ago sept oct nov dic",
    "Yo Tú Él Ella Usted Nosotros Ellos Ellas El La Los Las Lo Un Una Unos Unas Este Esta Esto Ese Esa Eso Mi Tu \
     Su Mis Sus Y Pero O Entonces Luego Después Cuando Si Como En A Al De Del Por Para Con Sin Qué Quién Dónde \
     Cómo Cuándo Sí No Fue Es Hay Ya También Se Me Te Le Nos",
);

const ITALIAN: Rules = Rules::new(
    "sig sigg sig.ra sig.na sig.re dott dott.ssa dr prof prof.ssa ing avv arch geom rag on mons card p.es es cfr \
     cf ca v s ss S SS Sant spett gent egr",
    "n nr num pag pagg p pp art artt cap fig vol tel c comma lett par",
    "ecc etc a.C d.C S.p.A S.r.l snc sec gen feb mar apr mag giu lug ago set ott nov dic min max",
    "Io Tu Lui Lei Egli Noi Voi Loro Il Lo La I Gli Le Un Uno Una L Questo Questa Quello Quella Mio Mia Suo Sua E \
     Ed Ma O Poi Allora Quando Se Come In A Al Alla Di Da Dal Per Con Su Chi Che Cosa Dove Perché Sì No Non È C \
     Ha Ho Era Fu Anche Ora",
);

const PORTUGUESE: Rules = Rules::new(
    "sr sra srs sras srta dr dra drs prof profa eng arq exmo exma ilmo d p.ex ex cf aprox av r pça trav rod sto sta \
     pe gal cel cap ten",
    "n nº núm no pág págs p pp art cap fig vol tel al inc",
    "etc a.C d.C S.A Ltda Lda Cia Inc séc jan fev mar abr mai jun jul ago set out nov dez V.Exa",
    "Eu Tu Você Ele Ela Nós Vocês Eles Elas O A Os As Um Uma Este Esta Isto Esse Essa Isso Aquele Meu Minha Seu \
     Sua E Mas Ou Então Depois Quando Se Como Em No Na De Do Da Por Para Com Sem Que Quem Onde Porque Sim Não É \
     Há Foi Já Também",
);

const DUTCH: Rules = Rules {
    apostrophe_words: &["s", "t", "n", "k", "m"],
    ..Rules::new(
        "dhr mevr mw mej dr drs ir ing prof mr ds bc msc st past bijv bv d.w.z dwz o.a m.b.t t.o.v i.p.v t.a.v m.u.v \
         i.v.m m.i n.a.v o.b.v t/m ca incl excl resp zgn vgl cf gem gen kol",
        "nr nrs blz p pp art afb fig hfst tel par lid bl vol",
        "enz etc e.d e.a a.u.b aub jl jr sr m.a.w n.v.t v.Chr n.Chr jan feb mrt apr jun jul aug sept okt nov dec min \
         max N.V B.V",
        "Ik Jij Je Hij Zij Ze Het Wij We Jullie U De Een Dit Dat Deze Die Mijn Jouw Zijn Haar Ons Onze Hun En Maar Of \
         Want Dus Dan Toen Daarna Als Wanneer In Op Aan Bij Met Naar Van Voor Om Wie Wat Waar Hoe Waarom Ja Nee Niet \
         Er Nu Ook Geen",
    )
};

const POLISH: Rules = Rules::new(
    "prof dr hab mgr inż doc lek ks bp abp kard gen płk mjr kpt por p pp np tzn tj tzw m.in zob ul al pl os św bł im \
     pt ds ok wg ww nt jw ppłk red",
    "nr s str godz tel art ust pkt rozdz rys t tab poz par",
    "itd itp in r w wieku n.e p.n.e tys mln mld zł gr kg cm m sp.z.o.o z.o.o S.A sek min bm br ub",
    "Ja Ty On Ona Ono My Wy Oni One To Ten Ta Te Ci Mój Moja Twój Jego Jej Nasz Ich I A Ale Lub Albo Więc Potem \
     Wtedy Gdy Kiedy Jeśli Jeżeli Jak W We Na Do Od Z Ze Po Przed Dla O U Kto Co Gdzie Dlaczego Czy Tak Nie Jest \
     Są Był Była Było Już Tam Tu Teraz Się",
)
.with_ordinals();

const CZECH: Rules = Rules::new(
    "p pí sl Ing ing Mgr mgr Bc MUDr JUDr PhDr RNDr MVDr PaedDr doc prof dr ThDr akad gen plk mjr kpt např napr tj tzv \
     tzn ul nám nam sv mj vč popř resp cca ev zn event viz",
    "č čís čp str s tel odst čl kap obr tab roč sv písm",
    "atd apod aj r.o s.r.o a.s k.s spol st stol př.n.l n.l hod min tis mil mld Kč r",
    "Já Ty On Ona Ono My Vy Oni Ony To Ten Ta Ti Toto Tento Tato Můj Moje Tvůj Jeho Její Náš Váš Jejich A Ale Nebo \
     Tak Pak Potom Když Pokud Jestli Jako V Ve Na Do Od Z Ze Po Před Pro O U S Se Kdo Co Kde Kdy Jak Proč Ano Ne \
     Je Jsou Byl Byla Bylo Má Mají Už Tam Tady Teď Ja Čo Áno Nie Keď Ako",
)
.with_ordinals();

const RUSSIAN: Rules = Rules::new(
    "проф акад доц канд г-н г-жа гр ген полк кап им ул пр просп пер пл наб бул ш д кв корп стр обл р-н пос дер т.е т.к \
     т.н т.о напр см ср св о оз",
    "стр с гл рис табл п пп ч ст тел № т разд илл",
    "т.д т.п др пр г гг в вв н.э до.н.э руб коп тыс млн млрд трлн кг см м км мин сек ч час чел экз США",
    "Я Ты Он Она Оно Мы Вы Они Это Этот Эта Эти Тот Та Те Мой Моя Твой Его Её Ее Наш Ваш Их И А Но Или Потом Затем \
     Тогда Когда Если Как В Во На К До От Из С Со По После Перед Для О Об У За При Кто Что Где Куда Почему Зачем \
     Да Нет Не Ни Был Была Было Были Уже Там Тут Здесь Теперь Сейчас",
);

const UKRAINIAN: Rules = Rules::new(
    "проф акад доц канд п пан ген ім вул просп пров пл бул буд кв обл р-н с м смт т.зв тзв напр див св о оз тобто",
    "стор с гл розд рис табл п пп ч ст тел № т",
    "т.д т.п ін р рр ст н.е грн коп тис млн млрд кг см км хв сек год США",
    "Я Ти Він Вона Воно Ми Ви Вони Це Цей Ця Ці Той Та Ті Мій Моя Твій Його Її Наш Ваш Їх І Й А Але Або Потім Тоді \
     Коли Якщо Як У В На До Від Із З Зі По Після Перед Для Про За При Хто Що Де Куди Чому Так Ні Не Був Була Було \
     Були Вже Там Тут Тепер Зараз",
);

const SCANDINAVIAN: Rules = Rules::new(
    "dr prof hr fru frk ing civ.ing dir bl.a bl.a f.eks t.ex t.d.s dvs d.v.s fx f.ex ca jf jfr kl pga p.g.a st sk s.k \
     s.kr mht m.h.t mvh",
    "nr no s sid kap fig art tlf tel § st",
    "osv o.s.v m.m m.fl m.v etc f.Kr e.Kr kr mio mia mill mrd jan feb apr aug sept okt nov dec des min sek tim A/S",
    "Jag Du Han Hon Den Det Vi Ni De En Ett Denna Detta Min Mitt Din Sin Och Men Eller Så Sedan Då När Om Som I På \
     Till Från Med För Av Vad Var Hur Varför Ja Nej Inte Är Jeg Hun Dette Denne Et Og Så Når Hvis Til Fra Hvad Hva \
     Hvor Hvorfor Nei Ikke Er Der Her Där Här Nu Nå",
)
.with_ordinals();

const FINNISH: Rules = Rules::new(
    "tri prof hra rva nti esim ts ns ks vrt n noin ml mm yms dr hr pr nt vt s.o nn",
    "nro nr s luku kuva puh p art",
    "jne ym tms eKr jKr e.Kr j.Kr milj mrd klo v vs jms jt eur min sek",
    "Minä Sinä Hän Me Te He Se Ne Tämä Tuo Nämä Ja Mutta Tai Sitten Kun Jos Kuka Mikä Mitä Missä Miksi Kyllä Ei On \
     Oli Ovat Nyt Täällä Siellä Ma Sa Ta Meie Teie Nad See Need Ja Aga Või Siis Kui Kes Mis Kus Miks Jah Ei Oli",
)
.with_ordinals();

const HUNGARIAN: Rules = Rules::new(
    "dr Dr prof ifj id özv Szt pl ún ill kb vö ld Sz Mt",
    "sz old o tel fej ábr bek köt §",
    "stb st i.e i.sz Kft Zrt Bt Nyrt u krt db Ft ezer max min jan febr márc ápr máj jún júl aug szept okt nov dec",
    "Én Te Ő Mi Ti Ők Az A Ez Ezek Azok Egy És De Vagy Aztán Majd Akkor Amikor Ha Hogy Mint Ki Hol Mikor Miért Igen \
     Nem Van Volt Már Itt Ott Most",
)
.with_ordinals();

const ROMANIAN: Rules = Rules::new(
    "dl d-l dna d-na dra d-ra dr prof ing av arh gen col cpt Sf sf ex de.ex cf str bd bul sos",
    "nr pag p pp art alin cap fig vol tel lit et ap bl sc",
    "etc î.Hr d.Hr î.e.n e.n sec S.A S.R.L mii mil mld ian feb mart apr iun iul aug sept oct nov dec",
    "Eu Tu El Ea Noi Voi Ei Ele Un O Acest Această Aceasta Acel Aceea Meu Mea Și Dar Sau Apoi Atunci Când Dacă Cum În \
     La De Din Pe Cu Pentru Cine Ce Unde De Da Nu Este Sunt Era A Au Am Acum Aici Acolo",
);

const CROATIAN: Rules = Rules::new(
    "dr prof mr ing dipl gosp g gđa gđica sv npr tj tzv odn ul dipl.ing doc akad ga ing mag др проф инж г гђа св нпр тј \
     тзв одн ул",
    "br str čl st sl tel gl kap бр стр чл ст сл тел",
    "itd i.sl sl dr god g st n.e pr.Kr d.o.o d.d o.o mil mlrd tis kn itn ipd oz итд сл др год н.е дин",
    "Ja Ti On Ona Ono Mi Vi Oni One To Taj Ta Ovaj Ova Moj Moja I A Ali Ili Pa Onda Zatim Kad Kada Ako Kako U Na Do Od \
     Iz S Sa Po Prije Za O Tko Ko Što Šta Gdje Zašto Da Ne Je Su Bio Bila Bilo Jaz In Ter Potem Ko Če Kdo Kaj Kje \
     Ја Ти Он Она Ми Ви Они То Тај Та И А Али Или Онда Кад Када Ако Како У На До Од Из За О Ко Шта Где Зашто Да Не Је \
     Су Био Била",
)
.with_ordinals();

const TURKISH: Rules = Rules::new(
    "dr prof doç yrd av op sn müh mim alb gen bkz krş örn mah cad sok sk bul apt vb.gibi Hz St Ord",
    "no nr s sf tel md böl şek cilt c",
    "vb vs vd A.Ş Ltd Şti T.C M.Ö M.S yy dk sn sa",
    "Ben Sen O Biz Siz Onlar Bu Şu Bir Ve Ama Veya Sonra Ne Kim Nerede Neden Nasıl Evet Hayır Değil Var Yok Çok Şimdi \
     Burada Orada",
)
.with_ordinals();

const GREEK: Rules = Rules {
    semicolon_asks: true,
    ..Rules::new(
        "κ κα κος δρ Δρ καθ π.χ δηλ βλ πρβλ Αγ αγ οδ λεωφ Μ",
        "αρ σ σελ κεφ εικ τηλ τ παρ άρθρ",
        "κ.λπ κλπ κ.ά κ.τ.λ π.Χ μ.Χ π.μ μ.μ εκ δισ χιλ Ι.Χ",
        "Εγώ Εσύ Αυτός Αυτή Αυτό Εμείς Εσείς Αυτοί Ο Η Το Οι Τα Τον Την Ένας Μία Μια Ένα Και Αλλά Ή Μετά Τότε Όταν Αν Πώς \
         Σε Στο Στη Στην Από Με Για Ποιος Τι Πού Γιατί Ναι Όχι Δεν Θα Είναι Ήταν Τώρα Εδώ Εκεί",
    )
};

const ARABIC: Rules = Rules::new(
    "د أ م ا ش مج دکتر آقای مثلا",
    "ص ج ط ف ت رقم شماره",
    "ق.م ب.م إلخ الخ هـ م.م",
    "هو هي هم أنا أنت نحن هذا هذه ذلك تلك ثم لكن كان كانت هل ما لا نعم بعد قبل أين كيف لماذا متى",
);

const HINDI: Rules = Rules::new(
    "डॉ डा प्रो पं श्री कु मो स्व इं एड ले कर्नल",
    "रु पृ सं क्र फोन नं",
    "कि.मी मि कि.ग्रा ई ई.पू सें.मी",
    "मैं तू तुम आप वह वे हम यह ये एक और लेकिन पर फिर जब अगर क्या कौन कहाँ क्यों कैसे हाँ नहीं",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_found_as_it_stands_and_at_the_start_of_a_sentence() {
        let words = Words {
            list: "np tzn",
            any_case: true,
        };
        assert!(words.has("np") && words.has("Np") && words.has("l'np"));
        assert!(!words.has("NP") && !words.has(""));
        assert!(!exact("max").has("Max"));
    }

    #[test]
    fn no_list_has_an_empty_word() {
        for (codes, rules) in LANGUAGES {
            let lists = [
                &rules.titles,
                &rules.before_numbers,
                &rules.abbreviations,
                &rules.first_words,
            ];
            for words in lists {
                assert!(!words.list.split(' ').any(str::is_empty), "{codes}");
            }
        }
    }
}
