"""What axe, a checker of how pages are reached by everybody, finds wrong with a page."""

import os
import pathlib

# What is pressed has room for a finger (WCAG 2.2, 2.5.8): axe looks for that only where it is asked to.
RULES = '{ rules: { "target-size": { enabled: true } } }'
LOOK = "async () => (await axe.run(%s)).violations.map((it) => [it.id, it.nodes.map((node) => [node.html, node.failureSummary])])" % RULES


def faults(page):
    """What is wrong with the page as it stands."""
    source = pathlib.Path(os.environ["SVC_NODE_HOME"]) / "node_modules/axe-core/axe.min.js"
    page.evaluate(source.read_text())
    return page.evaluate(LOOK)
