//! Whether a text is in neither language: letters and frequent short words that only other languages have.
//!
//! [`super::detect`] asks. There is no model of other languages here, only what gives them away in a
//! sentence; a single word of theirs may pass. All that hangs on the answer is a warning, so one word
//! of another language among ours (`Wir fahren nach Łódź`) is no reason for it.

use super::table;

/// Whether what speaks for another language outweighs what speaks for German and English.
pub(super) fn is_foreign(text: &str, words: &[String]) -> bool {
    if text.contains(['¿', '¡']) {
        return true;
    }
    let ours = words.iter().filter(|word| table::knows(word)).count();
    let foreign = words.iter().filter(|word| is_foreign_word(word)).count();
    foreign > ours
}

/// A word of ours is never foreign, whoever else has it too: `die`, `er`, `on`, `de`.
fn is_foreign_word(word: &str) -> bool {
    let letter = |c: char| !c.is_ascii() && !OUR_LETTERS.contains(c);
    let listed = |(_, list): &(&str, &str)| list.split(' ').any(|listed| listed == word);
    !table::knows(word) && (word.contains(letter) || FREQUENT_WORDS.iter().any(listed))
}

/// Letters that our languages have, words from French included: `Café`, `naïve`, `à la carte`.
const OUR_LETTERS: &str = "äöüßẞéèêàáçïîôûëœæ";

/// Frequent words of other languages, by language.
const FREQUENT_WORDS: [(&str, &str); 14] = [
    (
        "French",
        "je tu il elle nous vous ils elles le les un une et est sont suis dans pour avec mais où qui que \
         quoi pas ne ce cette c'est j'ai mon ma mes ton sa ses au aux du des sur très bien bonjour merci \
         salut oui comment pourquoi aujourd'hui l'homme ça à fait être avoir sais s'il plaît",
    ),
    (
        "Spanish",
        "el los las una unos es está están soy eres somos yo tú él ella nosotros ellos y pero con por para \
         qué que cómo dónde cuándo muy bien hola gracias sí mi su sus del al lo le te se hacer tengo \
         tiene quiero buenos buenas días adiós señor usted como esto eso aquí ahora",
    ),
    (
        "Italian",
        "il lo gli una uno è sono sei siamo io noi loro e ma con per che chi come dove quando perché non \
         molto bene buongiorno buonasera grazie prego sì mio tuo suo del della dei delle nel nella di da \
         questo questa anche ho hai abbiamo stai sto",
    ),
    (
        "Portuguese",
        "os uma um é são sou eu ele ela nós eles mas com para por que quem como onde quando não muito bem \
         olá obrigado obrigada sim meu minha seu sua do da dos das no na em isto isso você bom dia",
    ),
    (
        "Dutch",
        "het een ik jij je hij zij wij jullie zijn ben bent niet maar met voor van naar wat waar hoe \
         waarom goed dank dankjewel hallo nee mijn jouw deze dit dat ook heb heeft hebben wordt gaat op \
         aan te uit bij nog kan geen er ze we",
    ),
    (
        "Polish",
        "jest są jestem nie tak to co kto gdzie kiedy jak dlaczego się na za od ja ty on ona oni ale czy \
         dla bardzo dobrze dzień dobry cześć dziękuję proszę mój moja ten ta",
    ),
    (
        "Swedish",
        "och är jag du han hon vi ni de inte men med för på av från vad var hur varför bra hej tack nej \
         min din det den ett som har att",
    ),
    (
        "Danish and Norwegian",
        "og er jeg du han hun vi de ikke men med til på af fra hva hvad hvor hvordan hvorfor hej hei tak \
         takk nei min det et som har at",
    ),
    (
        "Turkish",
        "ve bir bu şu ben sen biz siz onlar değil var yok ama için ile ne kim nerede nasıl neden çok iyi \
         merhaba teşekkürler evet hayır mi mı",
    ),
    (
        "Czech and Slovak",
        "je jsou jsem není ano ne co kdo kde kdy jak proč se na v s z do ale pro velmi dobře dobrý den \
         ahoj děkuji prosím můj ten ta to som nie dobre ďakujem",
    ),
    (
        "Hungarian",
        "az egy és van nem igen de mi ki hol mikor hogyan miért nagyon jó szia köszönöm kérem én te ő ez \
         hogy vagyok",
    ),
    (
        "Romanian",
        "și este sunt nu da ce cine unde când cum de ce foarte bine bună mulțumesc te rog eu el ea noi ei \
         cu pentru din la care",
    ),
    (
        "Finnish",
        "on ei ja minä sinä hän me te he mutta mitä kuka missä milloin miten miksi hyvin hyvää hei kiitos \
         kyllä olen olet ovat se tämä että",
    ),
    (
        "Indonesian",
        "yang dan di ke dari ini itu saya kamu dia kami mereka tidak ada apa siapa mana kapan bagaimana \
         terima kasih selamat dengan untuk",
    ),
];
