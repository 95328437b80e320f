"""What axe, a checker of how pages are reached by everybody, finds wrong with a page."""

import os
import pathlib

LOOK = "async () => (await axe.run()).violations.map((it) => [it.id, it.nodes.map((node) => [node.html, node.failureSummary])])"


def faults(page):
    """What is wrong with the page as it stands."""
    source = pathlib.Path(os.environ["SVC_NODE_HOME"]) / "node_modules/axe-core/axe.min.js"
    page.evaluate(source.read_text())
    return page.evaluate(LOOK)
