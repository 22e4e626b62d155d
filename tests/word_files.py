"""Word packages made from XML by hand: what python-docx cannot write."""

from __future__ import annotations

import io
import zipfile

from document_files import parse_bytes

from raydex.ir.parsed import ParsedFile
from raydex.kernels.limits import Limits

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
W_MAIN = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
NAMES = " ".join(
    f'xmlns:{prefix}="{name}"'
    for prefix, name in {
        "w": W_MAIN,
        "r": OFFICE,
        "m": "http://schemas.openxmlformats.org/officeDocument/2006/math",
        "mc": "http://schemas.openxmlformats.org/markup-compatibility/2006",
        "wp": "http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing",
        "wps": "http://schemas.microsoft.com/office/word/2010/wordprocessingShape",
        "a": "http://schemas.openxmlformats.org/drawingml/2006/main",
        "c": "http://schemas.openxmlformats.org/drawingml/2006/chart",
        "pic": "http://schemas.openxmlformats.org/drawingml/2006/picture",
        "v": "urn:schemas-microsoft-com:vml",
        "o": "urn:schemas-microsoft-com:office:office",
        "w14": "http://schemas.microsoft.com/office/word/2010/wordml",
    }.items()
)
PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def relations(items: list[tuple[str, str, str]]) -> str:
    """(id, kind, target): a target with `://` is external."""
    rows = "".join(
        f'<Relationship Id="{key}" Type="{PACKAGE + "/relationships/metadata" if kind == "core-properties" else OFFICE}/{kind}" '
        f'Target="{target}"{" TargetMode=" + chr(34) + "External" + chr(34) if "://" in target else ""}/>'
        for key, kind, target in items
    )
    return f'<Relationships xmlns="{PACKAGE}/relationships">{rows}</Relationships>'


def root(name: str, inner: str) -> str:
    return f"<w:{name} {NAMES}>{inner}</w:{name}>"


def pack(parts: dict[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in parts.items():
            made.writestr(name, data)
    return out.getvalue()


def word(body: str, *, links: tuple[tuple[str, str, str], ...] = (), more: dict[str, str | bytes] | None = None, **parts: str) -> bytes:
    """`parts` are inner XML of styles, numbering, footnotes, endnotes, comments or settings."""
    listed = [(f"part{at}", name, f"{name}.xml") for at, name in enumerate(parts)] + list(links)
    files: dict[str, str | bytes] = {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": relations([("d", "officeDocument", "word/document.xml"), ("c", "core-properties", "docProps/core.xml")]),
        "docProps/core.xml": "<c/>",
        "word/document.xml": root("document", f"<w:body>{body}</w:body>"),
        "word/_rels/document.xml.rels": relations(listed),
        **{f"word/{name}.xml": root(name, inner) for name, inner in parts.items()},
    }
    return pack(files | (more or {}))


def parse_word(data: bytes | str, limits: Limits | None = None, **options: object) -> ParsedFile:
    raw = data if isinstance(data, bytes) else word(data, **options)  # type: ignore[arg-type]
    return parse_bytes(raw, DOCX, path="file.docx", limits=limits)


def run(text: str, properties: str = "") -> str:
    about = f"<w:rPr>{properties}</w:rPr>" if properties else ""
    return f'<w:r>{about}<w:t xml:space="preserve">{text}</w:t></w:r>'


def par(inner: str, properties: str = "") -> str:
    """A paragraph of text or of runs."""
    about = f"<w:pPr>{properties}</w:pPr>" if properties else ""
    return f"<w:p>{about}{inner if inner.startswith('<') or not inner else run(inner)}</w:p>"


def style(name: str, inner: str = "", kind: str = "paragraph", shown: str = "", above: str = "") -> str:
    based = f'<w:basedOn w:val="{above}"/>' if above else ""
    return f'<w:style w:type="{kind}" w:styleId="{name}"><w:name w:val="{shown or name}"/>{based}{inner}</w:style>'


def level(at: int, text: str, form: str = "decimal", start: int = 1, more: str = "") -> str:
    return f'<w:lvl w:ilvl="{at}"><w:start w:val="{start}"/><w:numFmt w:val="{form}"/>{more}<w:lvlText w:val="{text}"/></w:lvl>'


def definition(key: int, *levels: str, more: str = "") -> str:
    return f'<w:abstractNum w:abstractNumId="{key}">{more}{"".join(levels)}</w:abstractNum>'


def listing(key: int, of: int, more: str = "") -> str:
    return f'<w:num w:numId="{key}"><w:abstractNumId w:val="{of}"/>{more}</w:num>'


def in_list(key: int, at: int = 0) -> str:
    return f'<w:numPr><w:ilvl w:val="{at}"/><w:numId w:val="{key}"/></w:numPr>'


HEADINGS = style("H1", '<w:pPr><w:outlineLvl w:val="0"/></w:pPr>', shown="heading 1") + style("H2", above="H1", shown="heading 2")
BULLETS = definition(1, level(0, "•", "bullet"), level(1, "o", "bullet")) + listing(1, 1)


def numbers(parsed: ParsedFile) -> list[tuple[str, str]]:
    return [(block.metadata.get("label", ""), block.text) for block in parsed.blocks]


def events(parsed: ParsedFile) -> dict[str, str]:
    return {event.name: event.message.partition(":")[0] for event in parsed.events}


def field(code: str, shown: str) -> str:
    mark = '<w:r><w:fldChar w:fldCharType="{}"/></w:r>'
    return f"{mark.format('begin')}<w:r><w:instrText>{code}</w:instrText></w:r>{mark.format('separate')}{shown}{mark.format('end')}"


def table(*rows: str, about: str = "") -> str:
    return f"<w:tbl><w:tblPr>{about}</w:tblPr>{''.join(rows)}</w:tbl>"


def row(*cells: str, about: str = "") -> str:
    return f"<w:tr>{f'<w:trPr>{about}</w:trPr>' if about else ''}{''.join(cells)}</w:tr>"


def cell(inner: str, about: str = "") -> str:
    return f"<w:tc><w:tcPr>{about}</w:tcPr>{inner if inner.startswith('<') else par(inner)}</w:tc>"


def spans(parsed: ParsedFile, at: int = 0) -> list[list[tuple[str, int, int]]]:
    made = [block for block in parsed.blocks if block.kind == "table"][at].metadata["rows"]
    return [[(item["text"], item["row_span"], item["col_span"]) for item in line] for line in made]


def picture(key: str, alt: str = "", more: str = "") -> str:
    return (
        f'<w:r><w:drawing><wp:inline><wp:docPr id="1" name="P" descr="{alt}">{more}</wp:docPr>'
        f"<a:graphic><a:graphicData><pic:pic><pic:blipFill>"
        f"<a:blip {key}/></pic:blipFill></pic:pic></a:graphicData></a:graphic></wp:inline></w:drawing></w:r>"
    )
