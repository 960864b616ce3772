return "\ud800";
