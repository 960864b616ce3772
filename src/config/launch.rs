//! Checks of the variables that a server's entry sets.

/// Whether a variable makes a program load code that is not its own.
pub(super) fn loads_code(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "PATH",
        "NODE_OPTIONS",
        "NODE_PATH",
        "PYTHONSTARTUP",
        "PYTHONPATH",
        "PYTHONHOME",
        "PYTHONINSPECT",
        "BASH_ENV",
        "ENV",
        "PERL5OPT",
        "PERL5LIB",
        "RUBYOPT",
        "RUBYLIB",
        "JAVA_TOOL_OPTIONS",
        "_JAVA_OPTIONS",
        "JDK_JAVA_OPTIONS",
        "GCONV_PATH",
        "IFS",
        "PROMPT_COMMAND",
        "GIT_SSH_COMMAND",
        "GIT_EXTERNAL_DIFF",
        "DOTNET_STARTUP_HOOKS",
    ];
    name.starts_with("LD_") || name.starts_with("DYLD_") || NAMES.contains(&name)
}
