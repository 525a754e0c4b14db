"""Classification of texts by 200,000 examples with scikit-learn: TF-IDF of words and pairs of words, and a linear
classifier by stochastic gradient descent, from the file to the answers."""

import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from contender import lines, serve


def labelled(path):
    return zip(*(line.split("\t") for line in lines(path)[1:]))


def main(_, data, threads):
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import SGDClassifier
    from sklearn.pipeline import make_pipeline

    def classify():
        before = time.process_time()
        model = make_pipeline(
            TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), SGDClassifier(loss="log_loss", alpha=1e-6, random_state=1, n_jobs=int(threads)))
        model.fit(*labelled(pathlib.Path(data) / "many.tsv"))
        texts, labels = labelled(pathlib.Path(data) / "test.tsv")
        right = sum(a == b for a, b in zip(model.predict(texts), labels))
        return {"n": 1, "ms": 1000 * (time.process_time() - before), "accuracy": right / len(labels)}

    serve({"build": classify}, None)


main(*sys.argv[1:])
