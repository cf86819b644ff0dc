package streamtight;

import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * The local file system without permissions. Hadoop's own starts a chmod process for nearly every file of a
 * checkpoint, which is more than half of the time of a small micro-batch.
 */
public class QuietFileSystem extends RawLocalFileSystem {
  public static final String SCHEME = "streamtight";

  public String getScheme() {
    return SCHEME;
  }

  public URI getUri() {
    return URI.create(SCHEME + ":///");
  }

  public void setPermission(Path path, FsPermission permission) {}

  public void setOwner(Path path, String user, String group) {}

  /** Puts one into Hadoop's cache of file systems, where every later look-up of the scheme finds it. */
  public static void register(Configuration base) throws IOException {
    Configuration configuration = new Configuration(base);
    configuration.setClassLoader(QuietFileSystem.class.getClassLoader());
    configuration.set("fs." + SCHEME + ".impl", QuietFileSystem.class.getName());
    FileSystem.get(URI.create(SCHEME + ":///"), configuration);
  }
}
