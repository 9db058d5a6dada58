#include <mc/csp.hpp>

#include <cstdio>
#include <initializer_list>
#include <memory>

struct Tree {
    std::unique_ptr<Tree> left, right;
    int value;
};
using TreePointer = std::unique_ptr<Tree>;

TreePointer grow(std::initializer_list<int> values) {
    TreePointer tree;
    for (int value : values) {
        TreePointer *place = &tree;
        while (*place)
            place = value < (*place)->value ? &(*place)->left : &(*place)->right;
        *place = TreePointer(new Tree{nullptr, nullptr, value});
    }
    return tree;
}

// False: nobody reads any more.
bool walk(const TreePointer &tree, const csp::writer<int> &out) {
    return !tree || (walk(tree->left, out) && out << tree->value && walk(tree->right, out));
}

csp::reader<int> in_order(const TreePointer &tree) {
    return csp::spawn_producer<int>([&tree](csp::writer<int> out) { walk(tree, out); });
}

bool same(const TreePointer &a, const TreePointer &b) {
    const auto left = in_order(a);
    const auto right = in_order(b);
    for (;;) {
        int x = 0;
        int y = 0;
        const bool more = bool(left >> x);
        if (more != bool(right >> y) || x != y)
            return false; // the walkers learn that their readers have gone
        if (!more)
            return true;
    }
}

void compare(const TreePointer &a, const TreePointer &b) {
    std::puts(same(a, b) ? "true" : "false");
    csp::schedule(); // until the walkers have ended: they hold references to the trees
}

int main() {
    compare(grow({5, 2, 8, 1, 9}), grow({1, 2, 5, 8, 9}));
    compare(grow({5, 2, 8, 1, 9}), grow({1, 3, 5, 8, 9}));
    compare(grow({5, 2, 8}), grow({8, 5}));
}
