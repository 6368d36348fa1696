// Listings are parts of functions: what all their lines are indented by is moved out of sight.
for (const code of document.querySelectorAll("pre code.language-rust")) {
    const lines = code.textContent.split("\n").filter((line) => line.trim());
    const indents = lines.map((line) => line.length - line.trimStart().length);
    code.style.marginLeft = `-${Math.min(...indents)}ch`;
}
