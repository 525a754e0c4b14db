"""Makes a reader's and a writer's role on a Milvus server, 2.5 or newer, with no more
rights than racflow needs in a database, which it makes if it is not there:

    pip install pymilvus
    MILVUS_ADDRESS=http://HOST:19530 MILVUS_TOKEN=root:PASSWORD python roles.py DATABASE [COLLECTION]

With a collection only a reader of that one is made: see attached.hcl.
"""
import os
import sys

# What run, ask, eval and serve call while the knowledge is up to date. Of a collection
# that another program makes it is all that racflow ever calls.
READER = ["DescribeCollection", "GetLoadState", "IndexDetail", "Query", "Search"]

# What a build calls beside that, and `racflow knowledge list` and `gc`.
WRITER = ["CreateIndex", "Delete", "Insert", "Load", "Upsert"]

# The same, of the database and not of a collection.
WRITER_OF_DATABASE = ["CreateCollection", "DropCollection"]


def make_role(client, role, privileges, database, collection="*"):
    client.create_role(role_name=role)
    for privilege in privileges:
        client.grant_privilege_v2(role_name=role, privilege=privilege, collection_name=collection, db_name=database)


def main(database, collection=None):
    from pymilvus import MilvusClient

    admin = MilvusClient(uri=os.environ["MILVUS_ADDRESS"], token=os.environ["MILVUS_TOKEN"])
    if collection:
        make_role(admin, f"{collection}_reader", READER, database, collection)
        return
    if database not in admin.list_databases():
        admin.create_database(db_name=database)
    make_role(admin, "racflow_reader", READER, database)
    make_role(admin, "racflow_writer", READER + WRITER + WRITER_OF_DATABASE, database)


if __name__ == "__main__":
    main(*sys.argv[1:])
