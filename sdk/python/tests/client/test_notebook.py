"""Runs the example notebook, where nbclient, pandas and the model minilm are."""
from __future__ import annotations

import subprocess
import unittest

try:
    import nbclient
    import nbformat
    import pandas  # noqa: F401
except ImportError:
    raise unittest.SkipTest("nbclient or pandas is not there")

import racflow
from helper import ROOT


class Notebook(unittest.TestCase):
    def test_outputs(self):
        there = subprocess.run([racflow.binary(), "model", "list"], check=True, capture_output=True, text=True).stdout
        if any(line.startswith("minilm ") and "no: racflow model pull" in line for line in there.splitlines()):
            self.skipTest("minilm is not there")
        folder = ROOT / "examples" / "notebook"
        notebook = nbformat.read(folder / "intents.ipynb", as_version=4)
        kept = [[output["output_type"] for output in cell.outputs] for cell in notebook.cells if cell.cell_type == "code"]
        nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
        self.assertEqual([[output["output_type"] for output in cell.outputs] for cell in notebook.cells if cell.cell_type == "code"], kept)


if __name__ == "__main__":
    unittest.main()
