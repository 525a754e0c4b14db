"""Answers the texts of Parquet files, on all executors of Spark: spark-submit --files pipeline.hcl,train.csv answer.py TICKETS ANSWERS"""
import sys

import racflow
from pyspark.sql import SparkSession

tickets, answers = sys.argv[1:]
spark = SparkSession.builder.appName("answers").getOrCreate()
rows = spark.read.parquet(tickets)
predictor = racflow.Predictor("pipeline.hcl", text="text", trust="hosts,secrets")
rows.mapInPandas(predictor.map, predictor.schema(rows.schema)).write.parquet(answers)
