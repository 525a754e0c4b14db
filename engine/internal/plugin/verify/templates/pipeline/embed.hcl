# A pipeline with the stage of this plugin, on data that came with it:
#
#   racflow run pipeline.hcl
#
# Requests are compared by the vectors of this stage.

knowledge "requests" {
  source { path = "train.tsv" }
  embed {
    use = "<<.Name>>/<<.Name>>"
    config { dimension = 512 }
  }
  store { use = "local" }
}

pipeline "requests" {
  input { path = "test.tsv" }
  retrieve "near" { from = knowledge.requests }
  sample "neighbours" { use = "neighbours" }
  elect "request" { use = "soft" }
}
