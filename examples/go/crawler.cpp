#include <mc/csp.hpp>

#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

const std::map<std::string, std::vector<std::string>> site = {
    {"/", {"/news", "/shop"}},
    {"/news", {"/", "/shop", "/lost"}},
    {"/shop", {"/shop/cart", "/"}},
    {"/shop/cart", {"/shop"}},
};

struct Page {
    std::string url;
    std::vector<std::string> links;
    bool found = false;
};

void fetch(const std::string &url, const csp::writer<Page> &out) {
    const auto page = site.find(url);
    if (page != site.end())
        out << Page{url, page->second, true};
    else
        out << Page{url, {}, false};
}

int main() {
    csp::channel<Page> pages;
    std::set<std::string> seen;
    std::set<std::string> lines;
    int pending = 0;
    const auto visit = [&](const std::string &url) {
        if (!seen.insert(url).second)
            return;
        ++pending;
        csp::spawn([url, out = +pages] { fetch(url, out); });
    };
    for (visit("/"); pending > 0; --pending) {
        Page page;
        -pages >> page;
        lines.insert((page.found ? "found " : "missing ") + page.url);
        for (const std::string &link : page.links)
            visit(link);
    }
    for (const std::string &line : lines)
        std::puts(line.c_str());
}
