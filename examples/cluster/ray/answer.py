"""Answers the texts of Parquet files, on all machines of Ray: ray job submit --working-dir . -- python answer.py TICKETS ANSWERS"""
import sys

import racflow
import ray

tickets, answers = sys.argv[1:]
ray.data.DataContext.get_current().execution_options.preserve_order = True  # or rows come as they are ready
ray.data.read_parquet(tickets).map_batches(
    racflow.Predictor,
    fn_constructor_args=["pipeline.hcl"],
    fn_constructor_kwargs={"text": "text", "trust": "hosts,secrets"},
    compute=ray.data.ActorPoolStrategy(min_size=1, max_size=2),  # at most one for each machine
    num_cpus=1,  # on a cluster most of a machine's, so that no machine has two
    batch_format="pyarrow",
    batch_size=1000,
).write_parquet(answers)
