import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import java.util.List;

/** A server of MongoDB's protocol for the adapters' tests: java -cp 'jars/*' MongoJavaServer.java PORT */
class MongoJavaServer {
    public static void main(String[] args) {
        var backend = new MemoryBackend();
        // Its own versions end with the wire version before the first that the driver speaks to.
        backend.version(new MongoVersion() {
            public List<Integer> getVersionArray() {
                return List.of(4, 4, 0);
            }

            public int getWireVersion() {
                return 9;
            }
        });
        new MongoServer(backend).bind("127.0.0.1", Integer.parseInt(args[0]));
    }
}
