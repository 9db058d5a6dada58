// Writes SVG: shapes, and text that is escaped. Pure. What it writes is complete at any moment but for the end, which `finish` adds.
#pragma once

#include <string>
#include <string_view>

namespace mc::mcrt {

struct Point {
    double x;
    double y;
};

constexpr double arrow_head_length = 8;

// Texts that are given are clean (text.hpp); attributes are written as they are, such as "class=\"run\"".
class Svg {
public:
    // style: a style sheet
    Svg(double width, double height, std::string_view style);

    void line(Point from, Point to, std::string_view attributes);
    void rectangle(Point at, double width, double height, std::string_view attributes, std::string_view title = "");
    void circle(Point at, double radius, std::string_view attributes);
    void path(std::string_view drawn, std::string_view attributes);
    void text(Point at, std::string_view attributes, const std::string &text, std::string_view title = "");
    // With a head at `to`, in the shaft's colour.
    void arrow(Point from, Point to, std::string_view colour, std::string_view attributes, std::string_view title = "");
    void begin_group(std::string_view attributes);
    void end_group();

    std::string finish() &&;

private:
    void titled(const std::string &element, std::string_view name, std::string_view title);

    std::string out_;
};

// Without needless digits.
std::string number(double value);
std::string escaped(std::string_view text);

} // namespace mc::mcrt
