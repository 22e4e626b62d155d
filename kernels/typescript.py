"""TypeScript and TSX source → CodeIR by tree-sitter.

The invariant: a file with errors keeps its good symbols and says so (warning parse_error); a file whose grammar is missing is rejected,
never guessed at (seed 1).
"""

from __future__ import annotations

from raydex.ir.errors import InputError
from raydex.ir.parsed import ParsedFile
from raydex.kernels import typescript_rules as rules
from raydex.kernels.code_calls import resolve_calls
from raydex.kernels.code_common import CodeFile, collector_paused
from raydex.kernels.code_text import SourceText
from raydex.kernels.request import ParseRequest
from raydex.kernels.typescript_walk import HANDLERS, TypeScriptWalk

PARSER = "tree-sitter-typescript"
PARSER_VERSION = "2"


def parse_typescript(request: ParseRequest) -> ParsedFile:
    """CodeIR of one TypeScript or TSX file. Raises InputError: syntax (null bytes), grammar_unavailable, too_many_symbols, too_deep."""
    with collector_paused():
        return _parse_file(request)


def _parse_file(request: ParseRequest) -> ParsedFile:
    from raydex.kernels.decode import decode

    decoded = decode(request.data)
    if "\0" in decoded.text:
        place = f"character {decoded.text.index(chr(0))}"
        raise InputError("the source holds null characters", reject_class="syntax", place=place)
    language = "tsx" if request.media_type == "text/x-tsx" else "typescript"
    source = SourceText(decoded.text, request.data, decoded.encoding)
    package = rules.module_path(request.path)
    file = CodeFile(request, source, language, package, package.rpartition("/")[2])
    walk = TypeScriptWalk(file, language)
    walk.run(HANDLERS)
    resolve_calls(file, walk.facts)
    line = walk.first_error()
    parsed = file.finish(PARSER, PARSER_VERSION, [*decoded.warnings, *(["parse_error"] if line else [])])
    if line:
        parsed.add_event("parse", "warning", "parse_error", f"line {line}: invalid syntax")
    return parsed
