"""From runs to statistics, tables, figures, a page, films."""
