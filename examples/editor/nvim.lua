-- Neovim: diagnostics, completion, hover, definitions and formatting of racflow's
-- pipeline files. The pattern says which files those are.
local pattern = { '*/pipelines/*.hcl', '*.racflow.hcl' }
local config = { name = 'racflow', cmd = { 'racflow', 'lsp' }, root_dir = vim.fn.getcwd() }
local client

vim.api.nvim_create_autocmd({ 'BufReadPost', 'BufNewFile' }, {
  pattern = pattern,
  callback = function(event)
    if vim.lsp.start then -- Neovim 0.8 and newer
      vim.lsp.start(config, { bufnr = event.buf })
      return
    end
    client = client or vim.lsp.start_client(config)
    vim.lsp.buf_attach_client(event.buf, client)
  end,
})
