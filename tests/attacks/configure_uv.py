# class: metadata
# tries: settings of uv in the block: indexes, sources, a cache, mirrors, trusted hosts
# network: any

# /// script
# dependencies = []
# [tool.uv]
# index-url = "http://127.0.0.1:@PORT@/simple"
# find-links = ["@DIR@/package"]
# cache-dir = "@DIR@/writable/cache"
# python-install-mirror = "http://127.0.0.1:@PORT@/python"
# allow-insecure-host = ["127.0.0.1"]
# [[tool.uv.index]]
# url = "http://127.0.0.1:@PORT@/other"
# default = true
# [tool.uv.sources]
# pysbx-canary-source = { path = "@DIR@/package", editable = true }
# ///
print("ATTEMPTED: the settings were not obeyed, if nobody was asked")
