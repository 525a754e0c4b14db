"""Runs the example notebook, where nbclient, pandas and the model minilm are."""
from __future__ import annotations

import unittest

try:
    import nbclient
    import nbformat
    import pandas  # noqa: F401
except ImportError:
    raise unittest.SkipTest("nbclient or pandas is not there")

from helper import ROOT, minilm


class Notebook(unittest.TestCase):
    def test_outputs(self):
        if not minilm():
            self.skipTest("minilm is not there")
        folder = ROOT / "examples" / "notebook"
        notebook = nbformat.read(folder / "intents.ipynb", as_version=4)
        kept = [[output["output_type"] for output in cell.outputs] for cell in notebook.cells if cell.cell_type == "code"]
        nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
        self.assertEqual([[output["output_type"] for output in cell.outputs] for cell in notebook.cells if cell.cell_type == "code"], kept)


if __name__ == "__main__":
    unittest.main()
