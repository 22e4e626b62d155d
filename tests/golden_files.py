"""One small file of every format, as the golden tests parse them: made by code, the same bytes each time."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from dataclasses import dataclass
from typing import Any

import deck_files
import sheet_files
import word_files
from biff_files import DATE, HIDDEN, VISIBLE, biff, sheet_stream
from container_files import compound_file, message
from pdf_files import one_page
from PIL import Image, ImageDraw, ImageFont

PNG = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000003000000020806000000") + bytes(20)
ODF = "urn:oasis:names:tc:opendocument:xmlns:"
ODF_NAMES = " ".join(
    [f'xmlns:{name}="{ODF}{name}:1.0"' for name in ("office", "text", "table", "style", "presentation")]
    + [f'xmlns:draw="{ODF}drawing:1.0" xmlns:svg="{ODF}svg-compatible:1.0" xmlns:xlink="http://www.w3.org/1999/xlink"']
)
TICKS = 133_537_104_000_000_000  # 2024-02-29T20:00:00 UTC


@dataclass(frozen=True)
class Sample:
    name: str
    media_type: str
    data: bytes


def zipped(*files: tuple[str, bytes | str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in files:
            archive.writestr(zipfile.ZipInfo(name), data)
    return out.getvalue()


def word() -> bytes:
    numbering = (
        word_files.definition(1, word_files.level(0, "%1"), word_files.level(1, "%1.%2"))
        + word_files.definition(2, word_files.level(0, "•", "bullet"))
        + word_files.listing(1, 1)
        + word_files.listing(2, 2)
    )
    body = (
        word_files.par("System", '<w:pStyle w:val="H1"/>' + word_files.in_list(1))
        + word_files.par("Brakes", '<w:pStyle w:val="H2"/>' + word_files.in_list(1, 1))
        + word_files.par(
            word_files.run("The limit is ")
            + '<w:del w:id="1"><w:r><w:delText>40</w:delText></w:r></w:del>'
            + f'<w:ins w:id="2">{word_files.run("55")}</w:ins>'
            + word_files.run(" km/h")
            + '<w:r><w:footnoteReference w:id="2"/></w:r>'
        )
        + word_files.par("front disc", word_files.in_list(2))
        + word_files.table(
            word_files.row(word_files.cell("Axle load", '<w:gridSpan w:val="2"/>'), word_files.cell("Note"), about="<w:tblHeader/>"),
            word_files.row(word_files.cell("1"), word_files.cell("2"), word_files.cell("three")),
        )
        + word_files.par(word_files.picture('r:embed="p"', alt="A gauge"))
    )
    return word_files.word(
        body,
        links=(("p", "image", "media/p.png"),),
        styles=word_files.HEADINGS,
        numbering=numbering,
        footnotes=f'<w:footnote w:id="2">{word_files.par("Dry road.")}</w:footnote>',
        more={"word/media/p.png": PNG},
    )


def deck() -> bytes:
    title = deck_files.shape(deck_files.para("Cooling loop"), at=deck_files.xfrm(0, 0, 400, 40), ph='type="title"')
    inner = deck_files.group(deck_files.box("radiator B", 10, 120, name=4), name=51)
    shapes = [title, deck_files.group(deck_files.box("pump A", 10, 60, name=3) + inner)]
    said = deck_files.shape(deck_files.para("Say it slowly."), ph='type="body"')
    notes = deck_files.part("p:notes", f"<p:cSld><p:spTree>{said}</p:spTree></p:cSld>")
    links = {1: [("n", "notesSlide", "../notesSlides/notesSlide1.xml")]}
    return deck_files.Deck([deck_files.slide(*shapes)], links, {"ppt/notesSlides/notesSlide1.xml": notes}).data()


def book() -> bytes:
    first = (
        sheet_files.text_row(1, "item", "price", "share") + '<row r="2"><c r="A2" t="inlineStr"><is><t>pump</t></is></c>'
        '<c r="B2"><f>1+299</f><v>300</v></c><c r="C2" s="1"><v>0.365</v></c></row>'
        + '<row r="3"><c r="A3" t="inlineStr"><is><t>valve</t></is></c><c r="B3"><f>B2*2</f></c></row>'
    )
    styles = f'<styleSheet xmlns="{sheet_files.MAIN}"><cellXfs><xf/><xf numFmtId="10"/></cellXfs></styleSheet>'
    return sheet_files.workbook(
        sheet_files.sheet_xml(first, after='<mergeCells><mergeCell ref="A3:A4"/></mergeCells>'),
        sheet_files.sheet_xml(sheet_files.text_row(1, "kept aside")),
        states={2: "hidden"},
        extra={"xl/styles.xml": styles},
    )


def odf(kind: str, body: str, styles: str = "") -> bytes:
    content = (
        f"<office:document-content {ODF_NAMES}><office:automatic-styles>{styles}</office:automatic-styles>"
        f"<office:body>{body}</office:body></office:document-content>"
    )
    return zipped(("mimetype", f"application/vnd.oasis.opendocument.{kind}"), ("content.xml", content))


ODT_BODY = (
    '<office:text><text:h text:outline-level="1">Service</text:h><text:p>Once a year<text:note text:note-class="footnote">'
    "<text:note-citation>1</text:note-citation><text:note-body><text:p>In spring.</text:p></text:note-body></text:note>.</text:p>"
    "<text:list><text:list-item><text:p>oil</text:p></text:list-item><text:list-item><text:p>filter</text:p></text:list-item></text:list>"
    '<table:table table:name="T"><table:table-row><table:table-cell table:number-columns-spanned="2"><text:p>Axle</text:p>'
    "</table:table-cell><table:covered-table-cell/></table:table-row><table:table-row><table:table-cell><text:p>a</text:p></table:table-cell>"
    "<table:table-cell><text:p>b</text:p></table:table-cell></table:table-row></table:table></office:text>"
)
ODS_BODY = (
    '<office:spreadsheet><table:table table:name="Cost"><table:table-row><table:table-cell office:value-type="string"><text:p>item</text:p>'
    '</table:table-cell><table:table-cell office:value-type="string"><text:p>share</text:p></table:table-cell></table:table-row>'
    '<table:table-row table:number-rows-repeated="2"><table:table-cell office:value-type="string"><text:p>pump</text:p></table:table-cell>'
    '<table:table-cell office:value-type="percentage" office:value="0.365"><text:p>36.5%</text:p></table:table-cell></table:table-row>'
    "</table:table></office:spreadsheet>"
)
ODP_BODY = (
    '<office:presentation><draw:page draw:name="p"><draw:frame svg:x="1cm" svg:y="1cm" svg:width="9cm" svg:height="1cm" '
    'presentation:class="title"><draw:text-box><text:p>Cooling loop</text:p></draw:text-box></draw:frame>'
    '<draw:frame svg:x="1cm" svg:y="5cm" svg:width="9cm" svg:height="1cm">'
    "<draw:text-box><text:p>pump A</text:p></draw:text-box></draw:frame>"
    '<presentation:notes><draw:frame presentation:class="notes"><draw:text-box><text:p>Say it slowly.</text:p></draw:text-box></draw:frame>'
    "</presentation:notes></draw:page></office:presentation>"
)
MAIL = (
    "From: Anna <anna@x.example>\r\nTo: Bo <bo@y.example>\r\nCc: cy@y.example\r\nSubject: =?utf-8?q?Pr=C3=BCfung?= 42\r\n"
    "Date: Thu, 29 Feb 2024 20:00:00 +0000\r\nMessage-ID: <m2@x.example>\r\nIn-Reply-To: <m1@x.example>\r\nMIME-Version: 1.0\r\n"
    "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nThe pump leaks.\r\n\r\n"
    "> Is it the pump?\r\n\r\n-- \r\nAnna\r\n--b\r\nContent-Type: text/csv\r\nContent-Disposition: attachment; filename=leak.csv\r\n\r\n"
    "pump,litres\r\n3,12\r\n--b--\r\n"
)
SAVED = (
    "From: <saved>\r\nSubject: Saved page\r\nMIME-Version: 1.0\r\nContent-Type: multipart/related; boundary=b; type=text/html\r\n\r\n"
    "--b\r\nContent-Type: text/html; charset=utf-8\r\nContent-Location: http://x.example/\r\n\r\n"
    '<h1>Manual</h1><p>Turn it off.</p><img src="cid:i" alt="Switch">\r\n'
    "--b\r\nContent-Type: image/png\r\nContent-ID: <i>\r\nContent-Transfer-Encoding: base64\r\n\r\n"
    "iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAYAAAA=\r\n--b--\r\n"
)
MAILBOX = (
    "From a@x.example Thu Feb 29 20:00:00 2024\nFrom: a@x.example\nSubject: One\nMessage-ID: <1@x>\n\nFirst mail.\n\n"
    "From a@x.example Thu Feb 29 21:00:00 2024\nFrom: a@x.example\nSubject: Two\nMessage-ID: <2@x>\n\n>From here on: second mail.\n\n"
)


def outlook() -> bytes:
    return compound_file(
        message(
            {0x0037: "Plan", 0x0C1A: "Anna", 0x5D01: "anna@x.example", 0x1013: "<p>Größe</p><ul><li>one</li></ul>".encode()},
            recipients=[(1, "Bo", "bo@y.example"), (2, "Cy", "cy@y.example")],
            attachments=[({0x3707: "note.txt", 0x3701: b"Text of the note.\n"}, {0x3705: 1})],
            numbers={0x0039: TICKS, 0x3FDE: 65001},
        )
    )


def packed() -> bytes:
    inner = io.BytesIO()
    with tarfile.open(fileobj=inner, mode="w") as archive:
        for name, data in (("one.md", b"# One\n\nAbout pumps.\n"), ("two/two.txt", b"About valves.\n")):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return gzip.compress(inner.getvalue(), mtime=0)


def ticket(description: Any, body: Any, version: int) -> bytes:
    fields = {
        "summary": "Pump stalls",
        "description": description,
        "status": {"name": "Open"},
        "reporter": {"displayName": "Ada"},
        "comment": {"comments": [{"id": "5", "author": {"displayName": "Bo"}, "created": "T1", "updated": "T2", "body": body}]},
        "worklog": {"worklogs": [{"id": "8", "author": {"displayName": "Cy"}, "started": "T3", "timeSpentSeconds": 3600}]},
    }
    item = {"field": "status", "fromString": "New", "toString": "Open"}
    issue = {
        "key": "OPS-7",
        "self": f"https://x.example/rest/api/{version}/issue/7",
        "fields": fields,
        "changelog": {"histories": [{"id": "9", "author": {"displayName": "Ada"}, "created": "T4", "items": [item]}]},
        "remotelinks": [{"id": 3, "relationship": "blocks", "object": {"title": "Wiki", "url": "https://wiki.example/x"}}],
    }
    return json.dumps(issue).encode()


WIKI = (
    "h2. Goal\n\nAsk [~ops] about *OPS-3*.\n\n* one\n** two\n\n||Part||Limit||\n|pump|4 bar|\n\n"
    "{code:python}\nx < y\n{code}\n\n{quote}Hot!{quote}\n"
)


def adf(*content: Any) -> dict[str, Any]:
    return {"type": "doc", "version": 1, "content": list(content)}


def node(kind: str, *content: Any, **attrs: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"type": kind}
    if attrs:
        found["attrs"] = attrs
    if content:
        found["content"] = [{"type": "text", "text": part} if isinstance(part, str) else part for part in content]
    return found


ADF = adf(
    node("heading", "Goal", level=2),
    node(
        "paragraph", "Ask ", node("mention", id="1", text="@ops"), " by ", node("date", timestamp="1772323200000"), node("hardBreak"), "now"
    ),
    node("codeBlock", "    x < y", language="python"),
    node("panel", node("paragraph", "Hot!"), panelType="warning"),
    node("taskList", node("taskItem", "Measure", state="DONE")),
    node(
        "table",
        node("tableRow", node("tableHeader", node("paragraph", "Part"))),
        node("tableRow", node("tableCell", node("paragraph", "pump"))),
    ),
)
STORAGE = (
    '<h1>Plan</h1><p>See <ac:link><ri:page ri:content-title="Other page"/></ac:link>.</p>'
    '<ac:structured-macro ac:name="code"><ac:parameter ac:name="language">python</ac:parameter>'
    "<ac:plain-text-body><![CDATA[x < y]]></ac:plain-text-body></ac:structured-macro>"
    '<ac:structured-macro ac:name="info"><ac:rich-text-body><p>Mind the gap.</p></ac:rich-text-body></ac:structured-macro>'
    "<ac:task-list><ac:task><ac:task-id>1</ac:task-id><ac:task-status>complete</ac:task-status><ac:task-body>Measure</ac:task-body></ac:task></ac:task-list>"
)


def picture() -> bytes:
    image = Image.new("RGB", (340, 120), "white")
    ImageDraw.Draw(image).text((20, 40), "Valve pressure 42", fill="black", font=ImageFont.load_default(32))
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


PDF_TEXT = (
    b"BT /F1 20 Tf 72 760 Td (Brakes) Tj ET BT /F1 11 Tf 72 720 Td (The front disc is worn below three millimetres.) Tj "
    b"0 -14 Td (It has to be changed at the next service.) Tj ET BT /F1 11 Tf 72 660 Td (- rear drum) Tj 0 -20 Td (- hand brake) Tj ET"
)
TEXTS: tuple[tuple[str, str, str], ...] = (
    ("note.txt", "text/plain", "First paragraph,\nof two lines.\n\n\nSecond: größer.\n"),
    (
        "data.json",
        "application/json",
        '{"name": "pump", "limits": {"bar": 1.10, "n": 12345678901234567890}, "parts": [{"id": 1}, {"id": 2}], "a": null}\n',
    ),
    ("rows.jsonl", "application/jsonl", '{"id": 1, "text": "one"}\n\n{"id": 2}\n{broken\n'),
    (
        "deploy.yaml",
        "application/yaml",
        "base: &b\n  retries: 3\nservice:\n  <<: *b\n  ports: [80, 443]\n  note: |\n    keep\n      indent\n---\nversion: 1.10\n",
    ),
    (
        "notice.xml",
        "application/xml",
        '<?xml version="1.0"?><doc xmlns="urn:x">'
        '<p>Turn <b>left</b> slowly.</p><!-- no --><item n="1"><id>7</id><q>a &lt; b</q></item></doc>',
    ),
    ("runs.csv", "text/csv", 'run,note\n1,"two\nlines"\n2,"a ""b"" c"\n'),
    ("runs.tsv", "text/tab-separated-values", "run\tnote\n1\tone, two\n2\tthree\n"),
    (
        "settings.toml",
        "application/toml",
        'title = "x"\n\n[server]\nport = 80\n\n[[server.host]]\nname = "a"\n\n[[server.host]]\nname = "b"\n',
    ),
    ("settings.ini", "text/x-ini", "; about\n[server]\nport = 80\n\n[client]\nname: a\n"),
    ("app.properties", "text/x-ini", "# about\nserver.port=80\nserver.name=pump\\\n  house\n"),
    (
        "app.log",
        "text/x-log",
        "2026-01-01 10:00:00 INFO pump - started\n2026-01-01 10:00:01 ERROR pump - stalled\n"
        'Traceback (most recent call last):\n  File "a.py", line 1\nValueError: x\n',
    ),
    (
        "pump.py",
        "text/x-python",
        '"""Pumps."""\nimport os\n\n\nclass Pump:\n    """A pump."""\n\n    def start(self) -> str:\n        return os.sep\n',
    ),
    (
        "pump.ts",
        "text/x-typescript",
        'import { x } from "./x";\n\n/** A pump. */\nexport class Pump {\n  start(): number {\n    return x();\n  }\n}\n',
    ),
    ("page.xml", "application/xml", STORAGE),
    ("mail.eml", "message/rfc822", MAIL),
    ("page.mhtml", "message/rfc822", SAVED),
    ("box.mbox", "application/mbox", MAILBOX),
)


DRAWING = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="40mm" height="20mm" viewBox="0 0 800 400"><title>Cooling loop</title>'
    '<desc>How the water flows.</desc><g><title>Tank</title><text x="1" y="2">Tank <tspan>A</tspan></text></g>'
    '<script>alert(1)</script><image href="http://127.0.0.1:9/pump.png"/></svg>'
)


def binary_book() -> bytes:
    cells = {(2, 1): "Item", (2, 2): "Since", (3, 1): "bolt", (3, 2): (45352.0, DATE), (4, 1): "nut", (4, 2): (45353.0, DATE)}
    return biff(("Stock", VISIBLE, sheet_stream(cells)), ("Old", HIDDEN, sheet_stream({(0, 0): "gone"})))


def samples() -> list[Sample]:
    """A file a format."""
    office = "application/vnd.openxmlformats-officedocument."
    open_document = "application/vnd.oasis.opendocument."
    return [
        *(Sample(name, media_type, text.encode()) for name, media_type, text in TEXTS),
        Sample("brakes.pdf", "application/pdf", one_page(PDF_TEXT)),
        Sample("system.docx", f"{office}wordprocessingml.document", word()),
        Sample("cooling.pptx", f"{office}presentationml.presentation", deck()),
        Sample("cost.xlsx", f"{office}spreadsheetml.sheet", book()),
        Sample("service.odt", f"{open_document}text", odf("text", ODT_BODY)),
        Sample("cost.ods", f"{open_document}spreadsheet", odf("spreadsheet", ODS_BODY)),
        Sample("cooling.odp", f"{open_document}presentation", odf("presentation", ODP_BODY)),
        Sample("plan.msg", "application/vnd.ms-outlook", outlook()),
        Sample(
            "files.zip",
            "application/zip",
            zipped(("one.md", "# One\n\nAbout pumps.\n"), ("data/two.json", '{"a": [1, 2]}'), ("x.bin", bytes(64))),
        ),
        Sample("files.tar.gz", "application/gzip", packed()),
        Sample("wiki-ticket.json", "application/json", ticket(WIKI, "Seen *again*.", 2)),
        Sample("adf-ticket.json", "application/json", ticket(ADF, adf(node("paragraph", "Seen again.")), 3)),
        Sample("gauge.png", "image/png", picture()),
        Sample("stock.xls", "application/vnd.ms-excel", binary_book()),
        Sample("flow.svg", "image/svg+xml", DRAWING.encode()),
    ]
