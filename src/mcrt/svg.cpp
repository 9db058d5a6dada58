#include "mcrt/svg.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace mc::mcrt {
namespace {

constexpr double head_half_width = 3.5;

std::string attribute(const char *name, double value) { return std::string(" ") + name + "=\"" + number(value) + "\""; }

std::string at(Point point) { return number(point.x) + " " + number(point.y); }

} // namespace

std::string number(double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%.1f", value);
    std::string out = text;
    if (out.ends_with(".0"))
        out.resize(out.size() - 2);
    return out == "-0" ? "0" : out;
}

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        switch (c) {
        case '&':
            out += "&amp;";
            break;
        case '<':
            out += "&lt;";
            break;
        case '>':
            out += "&gt;";
            break;
        case '"':
            out += "&quot;";
            break;
        default:
            out += c;
        }
    }
    return out;
}

Svg::Svg(double width, double height, std::string_view style) {
    out_ = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\"" +
           attribute("width", width) + attribute("height", height) + " viewBox=\"0 0 " + number(width) + " " +
           number(height) + "\">\n<style>" + escaped(style) + "</style>\n";
    rectangle({0, 0}, width, height, "fill=\"#ffffff\"");
}

void Svg::titled(const std::string &element, std::string_view name, std::string_view title) {
    if (title.empty())
        out_ += element + "/>\n";
    else
        out_ += element + "><title>" + escaped(title) + "</title></" + std::string(name) + ">\n";
}

void Svg::line(Point from, Point to, std::string_view attributes) {
    out_ += "<line" + attribute("x1", from.x) + attribute("y1", from.y) + attribute("x2", to.x) +
            attribute("y2", to.y) + " " + std::string(attributes) + "/>\n";
}

void Svg::rectangle(Point at, double width, double height, std::string_view attributes, std::string_view title) {
    titled("<rect" + attribute("x", at.x) + attribute("y", at.y) + attribute("width", width) +
               attribute("height", height) + " " + std::string(attributes),
           "rect", title);
}

void Svg::circle(Point at, double radius, std::string_view attributes) {
    out_ += "<circle" + attribute("cx", at.x) + attribute("cy", at.y) + attribute("r", radius) + " " +
            std::string(attributes) + "/>\n";
}

void Svg::path(std::string_view drawn, std::string_view attributes) {
    out_ += "<path d=\"" + std::string(drawn) + "\" " + std::string(attributes) + "/>\n";
}

void Svg::text(Point at, std::string_view attributes, const std::string &text, std::string_view title) {
    out_ += "<text" + attribute("x", at.x) + attribute("y", at.y) + " " + std::string(attributes) + ">" +
            (title.empty() ? "" : "<title>" + escaped(title) + "</title>") + escaped(text) + "</text>\n";
}

// The head is a shape of its own: markers do not take the shaft's colour in every browser.
void Svg::arrow(Point from, Point to, std::string_view colour, std::string_view attributes, std::string_view title) {
    const double length = std::max(std::hypot(to.x - from.x, to.y - from.y), 1.0);
    const Point along{(to.x - from.x) / length, (to.y - from.y) / length};
    const Point neck{to.x - along.x * arrow_head_length, to.y - along.y * arrow_head_length};
    const Point left{neck.x - along.y * head_half_width, neck.y + along.x * head_half_width};
    const Point right{neck.x + along.y * head_half_width, neck.y - along.x * head_half_width};
    out_ += "<g" + (title.empty() ? ">" : "><title>" + escaped(title) + "</title>");
    line(from, neck, "stroke=\"" + std::string(colour) + "\" " + std::string(attributes));
    path("M" + at(to) + " L" + at(left) + " L" + at(right) + " Z", "fill=\"" + std::string(colour) + "\"");
    out_ += "</g>\n";
}

void Svg::begin_group(std::string_view attributes) { out_ += "<g " + std::string(attributes) + ">\n"; }
void Svg::end_group() { out_ += "</g>\n"; }

std::string Svg::finish() && { return std::move(out_) + "</svg>\n"; }

} // namespace mc::mcrt
