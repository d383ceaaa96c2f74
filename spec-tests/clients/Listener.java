import static java.util.concurrent.TimeUnit.*;
import com.mongodb.connection.*; import com.mongodb.event.*; import org.bson.Document;
public record Listener(java.io.PrintStream out) implements ConnectionPoolListener {
    synchronized void tell(Object event, ServerId server, Document line) {
        line.append("at", System.nanoTime() / 1e9).append("type", event.getClass().getSimpleName().replace("Event", ""));
        out.println(line.append("address", server.getAddress().toString()).toJson()); }
    void tell(Object event, ConnectionId it, Document line) { tell(event, it.getServerId(), line.append("connectionId", it.getLocalValue())); }
    Document took(long microseconds) { return new Document("durationMS", microseconds / 1e3); }
    String text(Enum<?> reason) { return reason.name().toLowerCase().replace("_c", "C").replace("_e", "E"); }
    public void connectionPoolCreated(ConnectionPoolCreatedEvent e) { ConnectionPoolSettings it = e.getSettings();
        tell(e, e.getServerId(), new Document("options", new Document("maxPoolSize", it.getMaxSize()).append("minPoolSize", it.getMinSize())
            .append("maxConnecting", it.getMaxConnecting()).append("maxIdleTimeMS", it.getMaxConnectionIdleTime(MILLISECONDS))
            .append("waitQueueTimeoutMS", it.getMaxWaitTime(MILLISECONDS)))); }
    public void connectionPoolReady(ConnectionPoolReadyEvent e) { tell(e, e.getServerId(), new Document()); }
    public void connectionPoolCleared(ConnectionPoolClearedEvent e) { tell(e, e.getServerId(), new Document()); }
    public void connectionPoolClosed(ConnectionPoolClosedEvent e) { tell(e, e.getServerId(), new Document()); }
    public void connectionCreated(ConnectionCreatedEvent e) { tell(e, e.getConnectionId(), new Document()); }
    public void connectionReady(ConnectionReadyEvent e) { tell(e, e.getConnectionId(), took(e.getElapsedTime(MICROSECONDS))); }
    public void connectionClosed(ConnectionClosedEvent e) { tell(e, e.getConnectionId(), new Document("reason", text(e.getReason()))); }
    public void connectionCheckOutStarted(ConnectionCheckOutStartedEvent e) { tell(e, e.getServerId(), new Document()); }
    public void connectionCheckOutFailed(ConnectionCheckOutFailedEvent e) {
        tell(e, e.getServerId(), took(e.getElapsedTime(MICROSECONDS)).append("reason", text(e.getReason()))); }
    public void connectionCheckedOut(ConnectionCheckedOutEvent e) { tell(e, e.getConnectionId(), took(e.getElapsedTime(MICROSECONDS))); }
    public void connectionCheckedIn(ConnectionCheckedInEvent e) { tell(e, e.getConnectionId(), new Document()); }
}
