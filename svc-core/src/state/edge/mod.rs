//! The border to the outside: what may be called, what is to be called, and the secrets that such calls are signed with.

mod config;
mod export;
mod integration;
mod job;
mod mcp;
mod news;
pub mod outbound;
mod put_off;
mod received;
mod replaced;
mod signature;

pub use config::{
    CODE_PLACES_MAX, ChatConfig, ChatFormat, CodeConfig, ConfigChange, DeciderConfig, IntegrationConfig, KeysGone,
    LINKED_MAX, LINKED_NAME_MAX, LinkedMember, MAILED_MAX, MailConfig, OidcConfig, SignalConfig, SignalKeys,
};
pub use export::{EventClass, Export, ExportConfig, NoClass};
pub use integration::{
    Integration, IntegrationKind, IntegrationSlot, IntegrationState, NamesKey, OVERLAP_MAX_HOURS, SealedSecret, Spread,
};
pub use job::{Attempt, Job, JobState, LEASE, Posted, RETRY_AFTER, Tried, Trouble, Work};
pub use mcp::{
    MCP_CALLED_NAME_MAX, MCP_DEFINITIONS_BYTES_MAX, MCP_NAME_MAX, MCP_SERVERS_MAX, MCP_TOOLS_MAX, McpCredential,
    McpSecret, McpServer, McpServers, McpState, McpTool, McpTools, TOOL_GLOBS_MAX, ToolFilter,
};
pub use news::{News, Topic};
pub use received::{EVENT_KEPT, Heard, Received};
pub use signature::signature;
