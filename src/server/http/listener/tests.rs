use super::*;

/// What is set is the system's to do: a test cannot make a machine disappear.
#[tokio::test]
async fn v_583_a_client_that_has_disappeared_is_noticed_also_while_nothing_is_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    detect_dead_peer(&stream).unwrap();
    assert_eq!(sockopt::tcp_user_timeout(&stream).unwrap(), 30_000);
    assert!(sockopt::socket_keepalive(&stream).unwrap());
    let times = (sockopt::tcp_keepidle(&stream).unwrap(), sockopt::tcp_keepintvl(&stream).unwrap());
    assert_eq!(times, (Duration::from_secs(10), Duration::from_secs(5)));
}
