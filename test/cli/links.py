"""Checks the links of HTML pages: links.py DIR. Every file and every place in a page that is linked to exists."""
import html.parser
import os
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.ids, self.links = set(), []
        with open(path, encoding="utf8") as f:
            self.feed(f.read())

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id":
                if value in self.ids:
                    self.links.append("#" + value + " (twice)")
                self.ids.add(value)
            elif name in ("href", "src"):
                self.links.append(value)


root = sys.argv[1]
pages = {os.path.join(d, f): None for d, _, files in os.walk(root) for f in files if f.endswith(".html")}
for path in pages:
    pages[path] = Page(path)
broken = linked = 0
for path, page in sorted(pages.items()):
    for link in page.links:
        url = urllib.parse.urlsplit(link)
        if url.scheme or url.netloc:
            continue
        linked += 1
        to = os.path.normpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(url.path))) if url.path else path
        if not os.path.isfile(to) or (url.fragment and url.fragment not in getattr(pages.get(to), "ids", ())):
            print("%s: %s leads nowhere" % (os.path.relpath(path, root), link))
            broken = 1
print("%d pages, %d links" % (len(pages), linked))
sys.exit(broken or len(pages) < 20)
