# A pipeline with the stage of this plugin, on data that came with it:
#
#   racflow run pipeline.hcl
#
# The voter sees the candidates in the order of this stage.

knowledge "requests" {
  source { path = "train.tsv" }
  embed { use = "hashing" }
  store { use = "local" }
}

pipeline "requests" {
  input { path = "test.tsv" }
  retrieve "near" { from = knowledge.requests }
  rerank "best" {
    use   = "<<.Name>>/<<.Name>>"
    top_k = 5
    config { found = 0.2 }
  }
  sample "neighbours" { use = "neighbours" }
  elect "request" { use = "soft" }
}
