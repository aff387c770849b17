"""Links from code names in prose to their API pages, also in other libraries whose inventories are loaded."""

import re

from docutils import nodes

#: A name, perhaps with its package and a call: ``TANClassifier``, ``TANClassifier(max_parents=1)``, ``tanlearn.load``.
NAME = re.compile(r"((?:[A-Za-z]\w*\.)*[A-Za-z]\w*)(?:\(.*\))?", re.DOTALL)
LINKED = ("class", "exception", "function", "method")


def is_unambiguous(name):
    """Return whether a name is clearly one of code: a class, or a function or method of several words."""
    last = name.rpartition(".")[2]
    return bool(re.search(r"[A-Z].*[a-z]|_", last)) or "." in name


def known_names(environment):
    """Return the page, anchor and full name of each documented object, by the names used in prose."""
    found = {}
    for full, entry in environment.domains["py"].objects.items():
        if entry.objtype not in LINKED or not full.startswith("tanlearn."):
            continue
        last = 2 if entry.objtype == "method" else 1
        for name in {full, ".".join(full.split(".")[-last:])}:
            if is_unambiguous(name) and (name not in found or len(full) < len(found[name][2])):
                found[name] = entry.docname, entry.node_id, full
    return found


def foreign_names(environment):
    """Return the address of each class of other libraries, by its full name and its last part."""
    found = {}
    inventory = getattr(environment, "intersphinx_inventory", {}).get("py:class", {})
    for full, entry in sorted(inventory.items(), key=lambda item: -len(item[0])):  # short names win
        address = entry.uri if hasattr(entry, "uri") else entry[2]
        for name in {full, full.rpartition(".")[2]}:
            if is_unambiguous(name):
                found[name] = address
    return found


def link_names(app, doctree, docname):
    """Turn code names into links, except in titles, in links and on the page that documents the name."""
    own, foreign = known_names(app.env), foreign_names(app.env)
    for literal in list(doctree.findall(nodes.literal)):
        match = NAME.fullmatch(literal.astext())
        ancestor = literal.parent
        while ancestor is not None and not isinstance(ancestor, nodes.reference | nodes.title | nodes.term):
            ancestor = ancestor.parent
        if match is None or ancestor is not None:
            continue
        if match[1] in own:
            page, anchor, full = own[match[1]]
            if page == docname:
                continue
            address = f"{app.builder.get_relative_uri(docname, page)}#{anchor}"
            link = nodes.reference("", "", internal=True, refuri=address, reftitle=full)
        elif match[1] in foreign:
            link = nodes.reference("", "", internal=False, refuri=foreign[match[1]], reftitle=match[1])
        else:
            continue
        literal.replace_self(link)
        link += literal


def setup(app):
    """Register the hook."""
    app.connect("doctree-resolved", link_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
