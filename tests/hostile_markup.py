"""Hostile markup and code: entities, addresses, depth, length (rows Z3, Z4, Z7 and Z8)."""

from __future__ import annotations

import json

import deck_files
import sheet_files
import word_files
from hostile_containers import mail, zipped
from hostile_files import World, add, parsed, refused
from pdf_files import one_page

ODT_NAMES = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0" xmlns:xlink="http://www.w3.org/1999/xlink" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"'
)
ODT = "application/vnd.oasis.opendocument.text"
ODS = "application/vnd.oasis.opendocument.spreadsheet"


def laughs() -> str:
    levels = "".join(f'<!ENTITY l{at} "{f"&l{at - 1};" * 10}">' for at in range(1, 10))
    return f'<?xml version="1.0"?><!DOCTYPE d [<!ENTITY l0 "lol">{levels}]><d><p>Before.</p><p>&l9;</p></d>'


def quadratic() -> str:
    return f'<!DOCTYPE d [<!ENTITY a "{"a" * 50_000}">]><d>{"&a;" * 50_000}</d>'


def external(target: str) -> str:
    return f'<?xml version="1.0"?><!DOCTYPE d [<!ENTITY x SYSTEM "{target}">]><d><p>Before.</p><p>&x;</p></d>'


def external_subset(target: str) -> str:
    return f'<?xml version="1.0"?><!DOCTYPE d SYSTEM "{target}"><d><p>Text.</p></d>'


def parameter_entity(world: World) -> str:
    return f'<!DOCTYPE d [<!ENTITY % all SYSTEM "{world.url}/all.dtd">%all;]><d><p>Text.</p></d>'


def included(world: World) -> str:
    target = f'<xi:include href="file://{world.outside}" parse="text"/><xi:include href="{world.url}/x"/>'
    return f'<?xml version="1.0"?><d xmlns:xi="http://www.w3.org/2001/XInclude"><p>Before.</p>{target}<p>After.</p></d>'


def styled(world: World) -> str:
    return f'<?xml version="1.0"?><?xml-stylesheet href="{world.url}/s.xsl" type="text/xsl"?><d><p>Text.</p></d>'


def odf(inner: str, kind: str = ODT, before: str = "", body: str = "text") -> bytes:
    inside = f"<office:body><office:{body}>{inner}</office:{body}></office:body>"
    content = f"{before}<office:document-content {ODT_NAMES}>{inside}</office:document-content>"
    return zipped(("mimetype", kind.encode()), ("content.xml", content.encode()), stored=1)


def doctype(world: World) -> str:
    return f'<!DOCTYPE d [<!ENTITY x SYSTEM "file://{world.outside}">]>'


def word_with_doctype(world: World) -> bytes:
    document = doctype(world) + word_files.root("document", "<w:body><w:p><w:r><w:t>&x;</w:t></w:r></w:p></w:body>")
    return word_files.word("", more={"word/document.xml": document})


def book_with_doctype(world: World) -> bytes:
    return sheet_files.workbook(doctype(world) + sheet_files.sheet_xml(sheet_files.text_row(1, "&x;")))


def deck_with_doctype(world: World) -> bytes:
    good = deck_files.slide(deck_files.box("Good slide", 0, 0))
    return deck_files.Deck([doctype(world) + deck_files.slide(deck_files.box("&x;", 0, 0)), good]).data()


REFUSED = ("broken_values", "doctype_ignored")
FAULT = ("parse_error",)
add("Z3", "billion-laughs.xml", parsed(1, "Before.", warnings=REFUSED, events=FAULT), lambda _: laughs())
add("Z3", "quadratic.xml", parsed(1, warnings=REFUSED, events=FAULT), lambda _: quadratic())
add("Z3", "entity-file.xml", parsed(1, warnings=REFUSED, events=FAULT), lambda world: external(f"file://{world.outside}"))
add("Z3", "entity-http.xml", parsed(1, warnings=REFUSED, events=FAULT), lambda world: external(f"{world.url}/entity"))
add("Z3", "subset-http.xml", parsed(1, "Text.", warnings=("doctype_ignored",)), lambda world: external_subset(f"{world.url}/d.dtd"))
add("Z3", "subset-file.xml", parsed(1, "Text.", warnings=("doctype_ignored",)), lambda world: external_subset(f"file://{world.outside}"))
add("Z3", "parameter-entity.xml", parsed(1, warnings=REFUSED, events=FAULT), parameter_entity)
add("Z3", "include.xml", parsed(2, "Before.", "After."), included)
add("Z3", "stylesheet.xml", parsed(1, "Text."), styled)
add("Z3", "deep.xml", refused("too_deep"), lambda _: "<d>" * 5_000 + "x" + "</d>" * 5_000)
add("Z3", "entity.docx", refused("invalid_input"), word_with_doctype)
add("Z3", "entity.xlsx", refused("invalid_input"), book_with_doctype)
add("Z3", "entity.pptx", parsed(2, "Good slide", warnings=("broken_slide",)), deck_with_doctype)
add("Z3", "entity.odt", refused("invalid_input"), lambda world: odf("<text:p>&x;</text:p>", before=doctype(world)))
add(
    "Z3",
    "entity.svg",
    parsed(0, warnings=("doctype_ignored", "broken_values", "no_semantic_blocks"), events=("parse_error",)),
    lambda world: f'<?xml version="1.0"?>{doctype(world)}<svg xmlns="http://www.w3.org/2000/svg"><text>&x;</text></svg>',
)
add(
    "Z3",
    "entity.html",
    parsed(2, "Text &x;"),  # a document type ends at its first bracket
    lambda world: f'<!DOCTYPE html [<!ENTITY x SYSTEM "file://{world.outside}">]><html><body><p>Text &x;</p></body></html>',
)


def page(world: World) -> str:
    """Every element that a browser would fetch for."""
    url = world.url
    return (
        f'<html><head><base href="{url}/base/"><link rel="stylesheet" href="{url}/s.css"><script src="{url}/s.js"></script>'
        f'<meta http-equiv="refresh" content="0;url={url}/r"><style>@import "{url}/i.css"; p {{ background: url({url}/b) }}</style></head>'
        f'<body><p>Text with a <a href="{url}/a">link</a>.</p><img src="{url}/i.png" srcset="{url}/2.png 2x" alt="Remote">'
        f'<img src="file://{world.outside}" alt="Local"><img src="http://169.254.169.254/latest/meta-data/" alt="Link-local">'
        f'<iframe src="{url}/f.html"></iframe><object data="{url}/o"></object><embed src="{url}/e"><video src="{url}/v"></video>'
        f'<svg><image href="{url}/svg.png"/><use href="{url}/x.svg#a"/></svg><form action="{url}/form"><input src="{url}/b"></form>'
        f'<p style="background:url({url}/c)">Styled.</p></body></html>'
    )


def notes(world: World) -> str:
    return (
        f"# Notes\n\n![Remote]({world.url}/i.png) and [a link]({world.url}/a?b=c).\n\n<img src='{world.url}/inner.png' alt='Inner'>\n\n"
        f"![Local](file://{world.outside})\n\n![[transclude]]\n\n[ref]: {world.url}/r\n\n{{% include {world.url}/x %}}\n"
    )


def card(world: World) -> str:
    def node(kind: str, **attrs: str) -> dict[str, object]:
        return {"type": kind, "attrs": attrs}

    link = [{"type": "link", "attrs": {"href": f"{world.url}/a"}}]
    paragraph = {"type": "paragraph", "content": [node("inlineCard", url=f"{world.url}/c"), {"type": "text", "text": "t", "marks": link}]}
    media = {"type": "mediaSingle", "content": [node("media", type="external", url=f"{world.url}/i.png", alt="Remote")]}
    content = [paragraph, node("blockCard", url=f"{world.url}/block"), node("embedCard", url=f"{world.url}/e", layout="wide"), media]
    fields = {"summary": "Cards", "description": {"type": "doc", "version": 1, "content": content}}
    return json.dumps({"key": "OPS-1", "self": f"{world.url}/rest/api/3/issue/1", "fields": fields})


def linked_word(world: World) -> bytes:
    url = world.url
    body = (
        word_files.par("Text.")
        + word_files.par(word_files.picture('r:link="img"', alt="Remote"))
        + word_files.par(f'<w:hyperlink r:id="go">{word_files.run("link")}</w:hyperlink>')
        + word_files.par(word_files.field(f' INCLUDEPICTURE "{url}/f.png" ', word_files.run("shown")))
        + word_files.par(word_files.field(f' INCLUDETEXT "{world.outside}" ', word_files.run("included")))
        + '<w:subDoc r:id="sub"/><w:altChunk r:id="chunk"/>'
    )
    links = (("img", "image", f"{url}/i.png"), ("go", "hyperlink", f"{url}/a"), ("sub", "subDocument", f"{url}/s.docx"))
    template = word_files.relations([("t", "attachedTemplate", f"{url}/t.dotm")])
    return word_files.word(
        body,
        links=(*links, ("chunk", "aFChunk", f"{url}/chunk.html")),
        settings='<w:attachedTemplate r:id="t"/>',
        more={"word/_rels/settings.xml.rels": template},
    )


def linked_book(world: World) -> bytes:
    rows = f'<row r="1"><c r="A1"><f>[1]Sheet1!A1</f><v>7</v></c><c r="B1" t="str"><f>WEBSERVICE("{world.url}/w")</f><v>shown</v></c></row>'
    link = f'<externalLink xmlns="{sheet_files.MAIN}" xmlns:r="{sheet_files.REL}"><externalBook r:id="rId1"/></externalLink>'
    extra: dict[str, str | bytes] = {
        "xl/externalLinks/externalLink1.xml": link,
        "xl/externalLinks/_rels/externalLink1.xml.rels": sheet_files.relations(("rId1", "externalLinkPath", f"{world.url}/b.xlsx")),
        "xl/connections.xml": f'<connections><connection><webPr url="{world.url}/q"/></connection></connections>',
    }
    return sheet_files.workbook(sheet_files.sheet_xml(rows), extra=extra)


def linked_deck(world: World) -> bytes:
    shapes = [deck_files.box("Slide text", 0, 0), deck_files.picture('r:link="img"', alt="Remote")]
    return deck_files.Deck([deck_files.slide(*shapes)], {1: [("img", "image", f"{world.url}/i.png"), ("l", "hyperlink", world.url)]}).data()


def linked_pdf(world: World) -> bytes:
    url = world.url.encode()
    actions = [
        b"/S /URI /URI (%b/a)" % url,
        b"/S /GoToR /F (%b/b.pdf) /D [0 /Fit]" % url,
        b"/S /Launch /F (%b)" % world.outside.encode(),
        b"/S /SubmitForm /F (%b/s)" % url,
        b"/S /JavaScript /JS (app.launchURL('%b/js'))" % url,
    ]
    notes = b"".join(b"<< /Type /Annot /Subtype /Link /Rect [72 690 300 715] /A << %b >> >>" % action for action in actions)
    return one_page(
        b"BT /F1 12 Tf 72 700 Td (Page text with links.) Tj ET", page=b"/Annots [%b] /AA << /O << %b >> >>" % (notes, actions[0])
    )


def remote_mail(world: World) -> str:
    return (
        "From: a@x.example\r\nSubject: remote\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"
        f'--b\r\nContent-Type: text/html\r\n\r\n<p>Mail text</p><img src="{world.url}/pixel.gif" alt="Pixel">\r\n'
        f'--b\r\nContent-Type: message/external-body; access-type=URL; URL="{world.url}/body"\r\n\r\n'
        "Content-Type: text/plain\r\n\r\n\r\n--b--\r\n"
    )


def saved_page(world: World) -> str:
    return (
        "From: <saved>\r\nSubject: Saved\r\nMIME-Version: 1.0\r\nContent-Type: multipart/related; boundary=b; type=text/html\r\n\r\n"
        f"--b\r\nContent-Type: text/html\r\nContent-Location: {world.url}/index.html\r\n\r\n"
        f'<p>Saved text</p><img src="{world.url}/i.png" alt="Pixel">\r\n--b--\r\n'
    )


add(
    "Z4", "remote.html", parsed(5, "Text with a link.", "Styled.", "@URL/a", "@URL/i.png", "http://169.254.169.254/latest/meta-data/"), page
)
add("Z4", "remote.md", parsed(7, "@URL/i.png", "@URL/a?b=c", "@URL/inner.png"), notes)
add("Z4", "cards.json", parsed(8, "@URL/c", "@URL/block", "@URL/e", "@URL/i.png"), card)
add("Z4", "remote.docx", parsed(5, "Text.", "@URL/i.png", "@URL/a", "shown", "included", events=("alt_chunk",)), linked_word)
add("Z4", "remote.xlsx", parsed(2, "7 | shown"), linked_book)
add("Z4", "remote.pptx", parsed(2, "Slide text", "@URL/i.png"), linked_deck)
add("Z4", "remote.pdf", parsed(1, "Page text with links.", "@URL/a"), linked_pdf)
add("Z4", "remote.eml", parsed(4, "Mail text", "@URL/pixel.gif", warnings=("external_body",)), remote_mail)
add("Z4", "remote.mhtml", parsed(4, "Saved text", "@URL/i.png"), saved_page)
add(
    "Z4",
    "remote.odt",
    parsed(2, "Text.", "@URL/i.png"),
    lambda world: odf(f'<text:p>Text.</text:p><text:p><draw:frame><draw:image xlink:href="{world.url}/i.png"/></draw:frame></text:p>'),
)
add(
    "Z4",
    "remote.svg",
    parsed(1, "@URL/i.png"),
    lambda world: f'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"><image href="{world.url}/i.png"/></svg>',
)


def nested_adf(depth: int) -> str:
    open_ = '{"type":"blockquote","content":[' * depth
    text = '{"type":"paragraph","content":[{"type":"text","text":"deep"}]}'
    description = f'{{"type":"doc","version":1,"content":[{open_}{text}{"]}" * depth}]}}'
    return f'{{"key":"OPS-1","self":"https://x.example/1","fields":{{"summary":"Deep","description":{description}}}}}'


def nested_table(depth: int) -> str:
    return "<w:tbl><w:tr><w:tc>" * depth + word_files.par("Innermost.") + f"{word_files.par('')}</w:tc></w:tr></w:tbl>" * depth


def nested_parts(depth: int) -> str:
    deep = "".join(f"Content-Type: multipart/mixed; boundary=b{at}\n\n--b{at}\n" for at in range(depth))
    return f"From: a@x.example\nSubject: deep\nMIME-Version: 1.0\n{deep}\ntext\n"


def forwarded(depth: int) -> str:
    deep = "".join(f"From: a@x.example\nSubject: level {at}\nContent-Type: message/rfc822\n\n" for at in range(depth))
    return f"{deep}From: a@x.example\nSubject: innermost\n\nInnermost.\n"


def forwarded_members(depth: int) -> dict[str, str]:
    names = [f"level {at}.eml" for at in range(1, depth)]
    paths = {"!/".join(names[: at + 1]): "" for at in range(depth - 1)}
    return paths | {"!/".join([*names, f"level {depth}.eml"]): "too_deep"}


add("Z7", "divs.html", parsed(1, "Innermost."), "<div>" * 20_000 + "Innermost." + "</div>" * 20_000)
add("Z7", "lists.html", parsed(1, "Innermost."), "<ul><li>" * 5_000 + "Innermost.")
add("Z7", "tables.html", parsed(1, "Innermost."), "<table><tr><td>" * 2_000 + "Innermost.")
add("Z7", "brackets.json", refused("too_deep"), "[" * 100_000 + "]" * 100_000)
add("Z7", "objects.jsonl", refused("too_deep"), '{"a":' * 100_000 + "1" + "}" * 100_000 + '\n{"b": 2}\n')
add("Z7", "deep-ticket.json", refused("too_deep"), lambda _: nested_adf(100_000))
add("Z7", "quotes.md", refused("too_deep"), ">" * 10_000 + " Innermost.\n")
add("Z7", "lists.md", refused("too_deep"), "".join(f"{'  ' * at}- level {at}\n" for at in range(1_000)))
add("Z7", "emphasis.md", parsed(1), "*a **b " * 20_000)
add("Z7", "flow.yaml", refused("too_deep"), "[" * 20_000 + "]" * 20_000)
add("Z7", "blocks.yaml", refused("too_deep"), "".join(f"{' ' * at}a:\n" for at in range(1_000)))
add("Z7", "arrays.toml", parsed(1, warnings=("broken_values",), events=FAULT), f"a = {'[' * 20_000}{']' * 20_000}\n")
add("Z7", "keys.toml", parsed(1), f"{'a.' * 5_000}b = 1\n")
add("Z7", "brackets.py", parsed(1, warnings=FAULT), f"def visible():\n    return {'(' * 3_000}1{')' * 3_000}\n")
add(
    "Z7",
    "blocks.py",
    parsed(1, warnings=FAULT),
    "def visible():\n" + "".join(f"{' ' * at}if a:\n" for at in range(1, 150)) + f"{' ' * 150}pass\n",
)
add("Z7", "brackets.ts", parsed(1), f"export function seen() {{ return {'(' * 3_000}1{')' * 3_000}; }}\n")
add("Z7", "parts.eml", parsed(2, warnings=("broken_part", "no_body")), lambda _: nested_parts(1_000))
add("Z7", "forwarded.eml", parsed(2, members=forwarded_members(21)), lambda _: forwarded(30))
add("Z7", "tables.docx", refused("too_deep"), lambda _: word_files.word(nested_table(500)))
add(
    "Z7",
    "lists.odt",
    refused("too_deep"),
    lambda _: odf("<text:list><text:list-item>" * 500 + "<text:p>deep</text:p>" + "</text:list-item></text:list>" * 500),
)
add(
    "Z7",
    "macros.xml",
    parsed(1, "Innermost."),
    '<ac:structured-macro ac:name="panel"><ac:rich-text-body>' * 2_000
    + "<p>Innermost.</p>"
    + "</ac:rich-text-body></ac:structured-macro>" * 2_000,
)
add(
    "Z7",
    "groups.pptx",
    refused("too_deep"),
    lambda _: deck_files.Deck([deck_files.slide(nested_groups(400))]).data(),
)


def nested_groups(depth: int) -> str:
    shapes = deck_files.box("Innermost", 0, 0)
    for _ in range(depth):
        shapes = deck_files.group(shapes)
    return shapes


def wide_table(rows: int) -> str:
    return "<table>" + "".join(f"<tr><td>{at}</td><td>value</td></tr>" for at in range(rows)) + "</table>"


add("Z8", "one-line.txt", refused("text_too_long"), lambda _: "x" * 51_000_000)
add("Z8", "long-line.txt", parsed(1), lambda _: "word " * 2_000_000)
add("Z8", "minified.js", refused("unsupported_media_type"), lambda _: "var a=1;" * 500_000)
add("Z8", "one-line.ts", parsed(1), lambda _: "export const a = [" + "1," * 200_000 + "];\n")
add("Z8", "rows.csv", parsed(500), lambda _: "id,name\n" + "".join(f"{at},value {at}\n" for at in range(100_000)))
add("Z8", "cells.csv", parsed(1_000), lambda _: (",".join(map(str, range(1_000))) + "\n") * 1_000)
add("Z8", "columns.csv", parsed(2), lambda _: ",".join(f"c{at}" for at in range(200_000)) + "\n" + "," * 199_999 + "\n")
add("Z8", "open-quote.csv", parsed(251, warnings=("open_quote",)), lambda _: 'a,b\n1,"2\n' + "3,4\n" * 50_000)
add("Z8", "quotes.csv", parsed(2, warnings=("ragged_rows",)), lambda _: "a,b\n" + '"' * 300_001 + "\n")
add("Z8", "rows.html", parsed(1), lambda _: wide_table(100_000))
add("Z8", "spans.html", parsed(1), '<table><tr><td colspan="1000000000" rowspan="1000000000">Wide</td></tr><tr><td>Below</td></tr></table>')
add("Z8", "unclosed.html", parsed(1), lambda _: "<b>" * 500_000 + "Text")
add("Z8", "half-tags.html", parsed(1), lambda _: "<" * 500_000 + "Text")
add("Z8", "half-comments.html", parsed(1), lambda _: "Text" + "<!--" * 200_000)
add("Z8", "attributes.html", parsed(1), lambda _: f"<p {' '.join(f'a{at}=1' for at in range(100_000))}>Text</p>")
add("Z8", "brackets.md", parsed(1), lambda _: "[" * 50_000 + "\n")
add("Z8", "images.md", parsed(1), lambda _: "![" * 50_000 + "\n")
add("Z8", "backticks.md", parsed(1), lambda _: "".join("`" * at + " " for at in range(1_000)))
add("Z8", "references.md", parsed(1), lambda _: "".join(f"[r{at}]: /x\n" for at in range(20_000)) + "[r1] " * 20_000)
add("Z8", "rows.md", parsed(1), lambda _: "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 20_000)
add("Z8", "line.log", parsed(1), lambda _: "2026-01-01 00:00:00 ERROR " + "at x(" * 500_000)
add("Z8", "digits.json", parsed(1), lambda _: '{"n": ' + "1" * 1_000_000 + "}")
add("Z8", "header.eml", parsed(3), lambda _: "From: a@x.example\r\nSubject: " + "word\r\n " * 100_000 + "end\r\n\r\nText.\r\n")
add("Z8", "encoded.eml", parsed(3), lambda _: "From: a@x.example\r\nSubject: " + "=?utf-8?q?a?= " * 50_000 + "\r\n\r\nText.\r\n")
add(
    "Z8",
    "attachments.eml",
    parsed(3, warnings=("too_many_attachments",), members={f"{at}.txt": "" for at in range(200)}),
    lambda _: mail(*((f"{at}.txt", "Text.") for at in range(300))),
)
add(
    "Z8",
    "rows.xlsx",
    parsed(501),
    lambda _: sheet_files.workbook(sheet_files.sheet_xml("".join(sheet_files.text_row(at, str(at), "value") for at in range(1, 100_001)))),
)
add(
    "Z8",
    "cells.ods",
    refused("too_large"),
    lambda _: odf(
        '<table:table table:name="S"><table:table-row table:number-rows-repeated="1048576">'
        '<table:table-cell table:number-columns-repeated="16384" office:value-type="string"><text:p>x</text:p></table:table-cell>'
        "</table:table-row></table:table>",
        ODS,
        body="spreadsheet",
    ),
)
add(
    "Z8",
    "rows.docx",
    parsed(1),
    lambda _: word_files.word(word_files.table(*(word_files.row(word_files.cell(str(at)), word_files.cell("v")) for at in range(100_000)))),
)
