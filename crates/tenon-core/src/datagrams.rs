//! What is only there if something carries datagrams.

tenon_proto::part!("_datagrams", IfDatagrams, if_datagrams);
