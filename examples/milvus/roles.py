"""Makes two roles on a Milvus server, 2.5 or newer, or on Zilliz Cloud, with no more
rights than racflow needs, in a database that is racflow's alone:

    pip install pymilvus
    MILVUS_ADDRESS=http://HOST:19530 MILVUS_TOKEN=root:PASSWORD python roles.py racflow
"""
import os
import sys

# What run, ask, eval and serve call while the knowledge is up to date; also all that a
# collection that somebody else makes is ever asked.
READER = ["DescribeCollection", "GetLoadState", "IndexDetail", "Query", "Search"]

# What a build calls beside that, and `racflow knowledge list` and `gc`.
WRITER = ["CreateIndex", "Delete", "Flush", "Insert", "Load", "Release", "Upsert"]

# The same, of the database and not of a collection.
WRITER_OF_DATABASE = ["CreateCollection", "DropCollection"]


def grant(client, database, collection="*"):
    """Makes the roles racflow_reader and racflow_writer."""
    rights = {"racflow_reader": READER, "racflow_writer": READER + WRITER}
    for role, privileges in rights.items():
        client.create_role(role_name=role)
        for privilege in privileges:
            client.grant_privilege_v2(role_name=role, privilege=privilege, collection_name=collection, db_name=database)
    for privilege in WRITER_OF_DATABASE:
        client.grant_privilege_v2(role_name="racflow_writer", privilege=privilege, collection_name="*", db_name=database)


if __name__ == "__main__":
    from pymilvus import MilvusClient

    admin = MilvusClient(uri=os.environ["MILVUS_ADDRESS"], token=os.environ["MILVUS_TOKEN"])
    if sys.argv[1] not in admin.list_databases():
        admin.create_database(db_name=sys.argv[1])
    grant(admin, sys.argv[1])
