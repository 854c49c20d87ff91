"""The learning curve: what each epoch came to, as a table and as a picture."""

import csv

COLUMNS = ("epoch", "training_loss", "validation_loss", "validation_accuracy", "validation_macro_f1", "learning_rate")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, GAP = 640, 210, 60, 190, 30, 60
STYLE = """
  text { font: 12px sans-serif; fill: #24292f } .axis { stroke: #8c959f; fill: none } .best { stroke: #8c959f; stroke-dasharray: 4 3 }
  .a { stroke: #0969da; fill: none; stroke-width: 2 } .b { stroke: #bc4c00; fill: none; stroke-width: 2 }
  circle.a { fill: #0969da } circle.b { fill: #bc4c00 } .paper { fill: #ffffff }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .paper { fill: #0d1117 } .a { stroke: #58a6ff } .b { stroke: #f0883e }
    circle.a { fill: #58a6ff } circle.b { fill: #f0883e }
  }
"""


def write_table(path, epochs):
    """Writes a line for each epoch; what is not known is empty."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(COLUMNS)
        rows.writerows(["" if epoch[name] is None else epoch[name] for name in COLUMNS] for epoch in epochs)


def write_picture(path, epochs, best):
    """Draws loss above, accuracy and macro F1 below, with a line at the epoch that was kept. Readable on light and dark ground."""
    losses = panel(epochs, best, TOP, "loss", ("training_loss", "validation_loss"), None)
    below = TOP + HEIGHT + GAP
    shares = panel(epochs, best, below, "validation", ("validation_accuracy", "validation_macro_f1"), 1.0)
    height = below + HEIGHT + 50
    whole = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + RIGHT} {height}" role="img">',
        f"<title>Learning curve of {len(epochs)} epochs; epoch {best} was kept</title><style>{STYLE}</style>",
        '<rect class="paper" width="100%" height="100%"/>',
        *losses,
        *shares,
        f'<text x="{LEFT + WIDTH / 2:g}" y="{height - 12}" text-anchor="middle">epoch</text></svg>\n',
    ]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(whole))


def panel(epochs, best, top, title, names, highest):
    """One system of axes from 0 to `highest`, or to the largest value."""
    values = [epoch[name] for name in names for epoch in epochs if epoch[name] is not None]
    highest = highest or max([*values, 1e-9]) * 1.05
    last = max(epochs[-1]["epoch"], 2)

    def across(epoch):
        return LEFT + WIDTH * (epoch - 1) / (last - 1)

    def up(value):
        return top + HEIGHT * (1 - value / highest)

    lines = [f'<text x="{LEFT}" y="{top - 10}">{title}</text>', f'<path class="axis" d="M{LEFT} {top}V{top + HEIGHT}H{LEFT + WIDTH}"/>']
    for part in (0, 0.5, 1):
        words = f"{part * highest:.3g}"
        lines.append(f'<text x="{LEFT - 8}" y="{up(part * highest) + 4:.1f}" text-anchor="end">{words}</text>')
    for epoch in sorted({1, best, epochs[-1]["epoch"]}):
        lines.append(f'<text x="{across(epoch):.1f}" y="{top + HEIGHT + 18}" text-anchor="middle">{epoch}</text>')
    lines.append(f'<path class="best" d="M{across(best):.1f} {top}V{top + HEIGHT}"/>')
    for place, (name, kind) in enumerate(zip(names, "ab")):
        points = [(across(epoch["epoch"]), up(epoch[name])) for epoch in epochs if epoch[name] is not None]
        if points:
            drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            lines.append(f'<polyline class="{kind}" points="{drawn}"/><circle class="{kind}" cx="{points[-1][0]:.1f}" cy="{points[-1][1]:.1f}" r="3"/>')
            y = top + 16 + 20 * place
            lines.append(f'<path class="{kind}" d="M{LEFT + WIDTH + 14} {y - 4}h20"/>')
            lines.append(f'<text x="{LEFT + WIDTH + 40}" y="{y}">{name.replace("_", " ")}</text>')
    return lines
