# A pipeline with the stage of this plugin, on data that came with it:
#
#   racflow run pipeline.hcl
#
# The labelled requests are kept and searched by this stage.

knowledge "requests" {
  source { path = "train.tsv" }
  embed { use = "hashing" }
  store { use = "<<.Name>>/<<.Name>>" }
}

pipeline "requests" {
  input { path = "test.tsv" }
  retrieve "near" { from = knowledge.requests }
  sample "neighbours" { use = "neighbours" }
  elect "request" { use = "soft" }
}
